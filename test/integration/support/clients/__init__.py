# SPDX-License-Identifier: ISC
"""Clients that tests connect: raw, asynchronous, libpq's, HTTP."""
