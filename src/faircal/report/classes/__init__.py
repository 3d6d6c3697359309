"""Tables, figures and sentences of a classifier's report, from the results store only."""
