"""ML model `onnx`: a model in ONNX format, run by ONNX Runtime (extra `ml`)."""
