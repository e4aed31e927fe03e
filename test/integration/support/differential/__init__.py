# SPDX-License-Identifier: ISC
"""Conversations that PostgreSQL and pgusher must answer alike."""
