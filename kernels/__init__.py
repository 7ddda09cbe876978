"""Tensor operations of the model, in PyTorch. They know shapes, not the model they serve."""
