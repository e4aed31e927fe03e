# SPDX-License-Identifier: ISC
"""Certificates made by openssl for a test, in a folder of their own."""

import os

from support.process import drop_folder, make_folder, own, run


class Authority:
    """A certificate authority and its certificates; the service user can read all files."""

    def __init__(self, name="Test CA"):
        self.folder = make_folder("pgusher-ca-")
        self.name = name
        self._serial = 0
        self.key = self.path("ca.key")
        self.certificate = self.path("ca.crt")
        self._openssl(
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-keyout", self.key, "-out", self.certificate, "-days", "2", "-subj", f"/CN={name}",
        )  # fmt: skip
        own(self.key)
        own(self.certificate)

    def path(self, name):
        """A path in the authority's folder."""
        return os.path.join(self.folder, name)

    def _openssl(self, *arguments):
        run(["openssl", *arguments], as_root=True)

    def issue(self, name, names="", days=1):
        """Make a key and a certificate for this common name: (certificate, key), paths."""
        self._serial += 1
        stem = self.path(f"{self._serial}")
        request, certificate, key, extensions = (stem + end for end in (".csr", ".crt", ".key", ".ext"))
        self._openssl(
            "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-keyout", key, "-out", request, "-subj", f"/CN={name}" if name else "/O=nobody",
        )  # fmt: skip
        with open(extensions, "w") as file:
            file.write("basicConstraints=CA:FALSE\n")
            if names:
                file.write(f"subjectAltName={names}\n")
        self._openssl(
            "x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.key,
            "-set_serial", str(1000 + self._serial), "-days", str(days), "-out", certificate,
            "-extfile", extensions,
        )  # fmt: skip
        own(certificate)
        own(key)
        os.chmod(key, 0o600)
        return certificate, key

    def revoke(self, *certificates):
        """A revocation list with these certificates in it; its path."""
        index, serial, config, out = (self.path(name) for name in ("index", "serial", "ca.cnf", "crl"))
        for path in (index, index + ".attr"):
            open(path, "w").close()
        with open(serial, "w") as file:
            file.write("01\n")
        with open(config, "w") as file:
            file.write(
                "[ca]\ndefault_ca=own\n[own]\n"
                f"database={index}\ncrlnumber={serial}\ndefault_md=sha256\ndefault_crl_days=2\n"
            )
        keys = ["-config", config, "-cert", self.certificate, "-keyfile", self.key]
        for certificate in certificates:
            self._openssl("ca", *keys, "-revoke", certificate)
        self._openssl("ca", *keys, "-gencrl", "-out", out)
        own(out)
        return out

    def destroy(self):
        """Remove everything."""
        drop_folder(self.folder)
