"""The command line: argparse front ends; all but run and validate are clients of the local API."""
