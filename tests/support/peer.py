"""A program that stands in for the runtime's process: `peer` is its end of the socket."""

PEER = """
import socket, sys, time
fd = int(sys.argv[sys.argv.index("--fd") + 1])
peer = socket.socket(fileno=fd)
"""
