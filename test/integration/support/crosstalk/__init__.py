# SPDX-License-Identifier: ISC
"""Many clients at the same time, each of which checks that every answer is its own."""
