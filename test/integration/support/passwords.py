# SPDX-License-Identifier: ISC
"""Password secrets, and both sides of the MD5 and SCRAM exchanges, for raw clients and servers."""

import base64
import functools
import hashlib
import hmac
import os


def md5_secret(password, user):
    """What PostgreSQL stores for an md5 password."""
    return "md5" + hashlib.md5((password + user).encode()).hexdigest()


def md5_answer(secret, salt):
    """The answer to an AuthenticationMD5Password with this salt."""
    return "md5" + hashlib.md5(secret[3:].encode() + salt).hexdigest()


def encode(data):
    return base64.b64encode(data).decode()


def hmac_sha256(key, data):
    return hmac.new(key, data, hashlib.sha256).digest()


@functools.lru_cache(maxsize=1024)
def scram_keys(password, salt, iterations):
    """ClientKey, StoredKey and ServerKey."""
    secret = password.encode() if isinstance(password, str) else password
    salted = hashlib.pbkdf2_hmac("sha256", secret, salt, iterations)
    client_key = hmac_sha256(salted, b"Client Key")
    return client_key, hashlib.sha256(client_key).digest(), hmac_sha256(salted, b"Server Key")


def scram_secret(password, salt=b"0123456789abcdef", iterations=4096):
    """What PostgreSQL stores for a SCRAM password."""
    _, stored, server = scram_keys(password, salt, iterations)
    return f"SCRAM-SHA-256${iterations}:{encode(salt)}${encode(stored)}:{encode(server)}"


def xor(left, right):
    return bytes(a ^ b for a, b in zip(left, right))


class ScramClient:
    """The client's side of one exchange. Attributes may be changed between the steps."""

    def __init__(self, password, header="n,,", user="", bound_to=b""):
        """bound_to is the channel binding data that belongs to a header of "p=...,,"."""
        self.password = password
        self.header = header
        self.bound_to = bound_to
        self.nonce = encode(os.urandom(18))
        self.first_bare = f"n={user},r={self.nonce}"
        self.server_first = None
        self.server_signature = None

    def first(self):
        """client-first-message."""
        return self.header + self.first_bare

    def challenge(self, server_first):
        """Read server-first-message; returns its attributes."""
        self.server_first = server_first
        return dict(part.split("=", 1) for part in server_first.split(","))

    def final(self, server_first):
        """client-final-message in answer to the server's first."""
        nonce = self.challenge(server_first)["r"]
        return self.prove(f"c={encode(self.header.encode() + self.bound_to)},r={nonce}")

    def prove(self, bare):
        """client-final-message of this text and the right proof for it, whatever the text is."""
        attributes = self.challenge(self.server_first)
        client_key, stored, server_key = scram_keys(
            self.password, base64.b64decode(attributes["s"]), int(attributes["i"])
        )
        signed = ",".join([self.first_bare, self.server_first, bare]).encode()
        self.server_signature = hmac_sha256(server_key, signed)
        proof = xor(client_key, hmac_sha256(stored, signed))
        return f"{bare},p={encode(proof)}"

    def check(self, server_final):
        """Assert that the server proved that it knows the secret."""
        assert server_final == "v=" + encode(self.server_signature)


class ScramServer:
    """The server's side of one exchange, from a clear-text password."""

    def __init__(self, password, salt=b"fedcba9876543210", iterations=4096):
        self.salt = salt
        self.iterations = iterations
        _, self.stored, self.server_key = scram_keys(password, salt, iterations)
        self.client_bare = None
        self.first_text = None

    def first(self, client_first, nonce=None):
        """server-first-message in answer to the client's first."""
        self.client_bare = client_first.split(",", 2)[2]
        client_nonce = self.client_bare.split("r=", 1)[1].split(",")[0]
        nonce = client_nonce + (encode(os.urandom(18)) if nonce is None else nonce)
        self.first_text = f"r={nonce},s={encode(self.salt)},i={self.iterations}"
        return self.first_text

    def final(self, client_final):
        """server-final-message, or None when the proof is wrong."""
        bare, proof = client_final.rsplit(",p=", 1)
        signed = ",".join([self.client_bare, self.first_text, bare]).encode()
        client_key = xor(base64.b64decode(proof), hmac_sha256(self.stored, signed))
        if hashlib.sha256(client_key).digest() != self.stored:
            return None
        return "v=" + encode(hmac_sha256(self.server_key, signed))
