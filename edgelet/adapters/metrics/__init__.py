"""Prometheus metrics: tables of what is told (`agent`, `usage`), and how it is written (`exposition`).

Values are collected when somebody asks; the library that writes them is imported then.
"""
