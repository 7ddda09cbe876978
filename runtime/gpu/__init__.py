"""Decoding on a GPU: weights in their stored formats, one step of static shapes, replayed as one CUDA graph.

The step's functions run on any device without a graph, which is how the tests hold them against
`runtime.model` on a CPU.
"""
