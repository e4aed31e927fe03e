# SPDX-License-Identifier: ISC
"""Servers that tests start: PostgreSQL, pgusher, LDAP, DNS, a scripted server, a TCP relay."""
