"""Every number that faircal gives, recorded and compared: what a refactoring must not change."""
