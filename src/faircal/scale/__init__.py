"""Work that takes more than one machine."""
