"""Pseudonyms and buckets of users.

    key    = first 15 hexadecimal digits of SHA-256("slowpath-fleet/1:" + user), as an integer (60 bits)
    bucket = key mod 1024          group = key mod 64

The store keeps the key, never the name. The prefix keeps the buckets independent of an experiment that assigns its
arms by a plain hash of the same name. This is a pseudonym: who has the list of names can compute the keys.

Users fall into groups as a whole, so sums over groups are independent whatever a user repeats: groups are what
intervals are made from (`clustered`).
"""

from __future__ import annotations

import hashlib
from typing import Final

SALT: Final = "slowpath-fleet/1:"
KEY_DIGITS: Final = 15
BUCKETS: Final = 1024
GROUPS: Final = 64
# One of so many buckets is in the sample that counts users of many launches: those that it divides.
SAMPLED: Final = 8
# Group of rows without a user.
NO_GROUP: Final = -1
SPECIFICATION: Final = 'first 15 hex digits of SHA-256("slowpath-fleet/1:" + user in UTF-8); bucket = key mod 1024'


def user_key(user: str) -> int:
    """Key of a user, 0 .. 2^60-1."""
    return int(hashlib.sha256((SALT + user).encode()).hexdigest()[:KEY_DIGITS], 16)


def user_bucket(user: str) -> int:
    """Bucket of a user, 0 .. 1023."""
    return user_key(user) % BUCKETS


def key_sql(user: str) -> str:
    """DuckDB expression for `user_key` of a VARCHAR expression."""
    return f"('0x' || substr(sha256('{SALT}' || {user}), 1, {KEY_DIGITS}))::BIGINT"
