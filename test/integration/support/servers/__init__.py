# SPDX-License-Identifier: ISC
"""Servers that tests start: PostgreSQL, pgusher, LDAP and DNS servers, a scripted server, a TCP relay."""
