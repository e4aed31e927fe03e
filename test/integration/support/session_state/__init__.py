# SPDX-License-Identifier: ISC
"""What PostgreSQL keeps in a session: every kind of it, and clients that look for it."""
