"""The study of moving pairs on Spark: how even hashing is, what a shuffle writes, what it costs."""
