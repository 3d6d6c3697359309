"""The study of monitoring: false alarms, and what is found, on simulated streams."""
