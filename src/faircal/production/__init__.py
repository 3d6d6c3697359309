"""A fitted model in use: scoring, the service, monitoring, Spark, ONNX."""
