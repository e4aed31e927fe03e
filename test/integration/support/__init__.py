# SPDX-License-Identifier: ISC
"""What the integration tests stand on: a PostgreSQL of their own, the daemon, raw peers of both kinds."""
