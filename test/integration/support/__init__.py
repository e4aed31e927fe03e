# SPDX-License-Identifier: ISC
"""What the integration tests use: servers and clients, and what they send to each other."""
