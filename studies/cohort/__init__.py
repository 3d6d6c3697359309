"""The study of the cohort: which imposters, which cohort, how many people of one's own."""
