"""Measuring methods, models and anybody's scores: audits, benchmarks, comparisons, thresholds."""
