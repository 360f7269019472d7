"""scripts/package, with a stand-in for cargo that "builds" what a test wants."""

import os
import pathlib
import platform
import struct
import subprocess
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MACHINES = {"x86_64": 62, "arm64": 183}
HOST = "arm64" if platform.machine() in ("aarch64", "arm64") else "x86_64"
OTHER = "x86_64" if HOST == "arm64" else "arm64"

# Says how it was called, and copies $FAKE to where the binaries are to be.
CARGO = """#!/bin/sh
echo "$@" >"$CALLS"
echo "flags=[$CARGO_ENCODED_RUSTFLAGS]" >>"$CALLS"
case " $* " in *" --release "*) folder=release ;; *) folder=debug ;; esac
mkdir -p "$CARGO_TARGET_DIR/$folder"
for name in payments edi-invoic fifo stock-bulk stock-statement payments-migrate lambda-inbox-migrate lambda-inbox-prune; do
    cp "$FAKE" "$CARGO_TARGET_DIR/$folder/$name"
done
"""


FEATURES = {
    "iam": b"?Action=connect&DBUser=\0",
    "secrets-manager": b"secretsmanager.GetSecretValue\0",
    "rds-ca-bundle": 2 * b"-----BEGIN CERTIFICATE-----\n",
}


def elf(arch: str, more: bytes = b"GLIBC_2.2.5\0GLIBC_2.34\0", features=FEATURES) -> bytes:
    header = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HH", 3, MACHINES[arch]) + bytes(44)
    return header + more + b"".join(FEATURES[feature] for feature in features)


class Package(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "bin").mkdir()
        cargo = self.folder / "bin" / "cargo"
        cargo.write_text(CARGO)
        cargo.chmod(0o755)

    def package(self, binary: bytes, *arguments: str, **variables: str):
        (self.folder / "fake").write_bytes(binary)
        environment = os.environ | {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "CARGO_TARGET_DIR": str(self.folder / "target"),
            "FAKE": str(self.folder / "fake"),
            "CALLS": str(self.folder / "calls"),
        }
        return subprocess.run(
            [ROOT / "scripts" / "package", *arguments],
            env=environment | variables,
            capture_output=True,
            text=True,
        )

    def packed(self) -> pathlib.Path:
        return self.folder / "target" / "functions" / HOST

    def test_each_function_is_a_zip_with_an_executable_bootstrap(self):
        result = self.package(elf(HOST), "--arch", HOST)
        self.assertEqual(result.returncode, 0, result.stderr)
        zips = sorted(self.packed().glob("*.zip"))
        self.assertEqual(len(zips), 8)
        for path in zips:
            with zipfile.ZipFile(path) as archive:
                (entry,) = archive.infolist()
                self.assertEqual(entry.filename, "bootstrap")
                self.assertEqual(entry.external_attr >> 16, 0o100755)
                self.assertEqual(archive.read(entry), elf(HOST))

    def test_the_same_binary_makes_the_same_bytes(self):
        made = []
        for _ in range(2):
            self.package(elf(HOST), "--arch", HOST)
            made.append((self.packed() / "payments.zip").read_bytes())
        self.assertEqual(*made)

    def test_the_template_beside_the_zips_deploys_them_for_their_architecture_only(self):
        self.package(elf(HOST), "--arch", HOST)
        template = (self.packed() / "template.yaml").read_text()
        self.assertIn(f"    AllowedValues: [{HOST}]\n    Default: {HOST}\n", template)
        self.assertNotIn("CodeUri: .\n", template)
        self.assertNotIn("rust-cargolambda", template)
        for name in ("payments", "payments-migrate", "lambda-inbox-prune"):
            self.assertEqual(template.count(f"CodeUri: {name}.zip\n"), 1)

    def test_a_binary_for_another_processor_is_refused(self):
        """G-06."""
        result = self.package(elf(OTHER), "--arch", HOST)
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"built for {OTHER}", result.stderr)
        self.assertIn(f"deploys it as {HOST}", result.stderr)
        self.assertEqual(list(self.packed().glob("*.zip")), [])

    def test_what_lambda_cannot_run_is_refused_and_says_what_helps(self):
        for binary, text in [
            (b"\xcf\xfa\xed\xfe" + bytes(60), "no program for Linux"),
            (elf(HOST, b"GLIBC_2.34\0GLIBC_2.38\0"), "glibc 2.38"),
            # A build without any feature deploys well, and fails at its first connection.
            (elf(HOST, features=[]), "without iam, secrets-manager, rds-ca-bundle,"),
            (elf(HOST, features=["secrets-manager", "rds-ca-bundle"]), "without iam,"),
        ]:
            result = self.package(binary, "--arch", HOST)
            self.assertEqual(result.returncode, 1)
            self.assertIn(text, result.stderr)
            self.assertIn("sam build", result.stderr)

    def test_no_flag_of_this_machines_gets_into_the_build_and_panics_unwind(self):
        """G-07."""
        native = {"RUSTFLAGS": "-C target-cpu=native", "CARGO_PROFILE_RELEASE_PANIC": "abort"}
        result = self.package(elf(HOST), "--arch", HOST, **native)
        self.assertEqual(result.returncode, 0, result.stderr)
        call, flags = (self.folder / "calls").read_text().splitlines()
        # Cargo takes it before RUSTFLAGS and every configuration file, also where it is empty.
        self.assertEqual(flags, "flags=[]")
        self.assertIn('--config profile.release.panic="unwind"', call)
        self.assertIn("--release", call)

    def test_debug_builds_are_for_this_machine_alone_whatever_targets_are_installed(self):
        targets = self.folder / "sysroot" / "lib" / "rustlib" / "aarch64-unknown-linux-gnu"
        targets.mkdir(parents=True)
        programs = {"rustc": f"echo {self.folder / 'sysroot'}", "strip": 'cp "$3" "$2"'}
        for name, script in programs.items():
            program = self.folder / "bin" / name
            program.write_text(f"#!/bin/sh\n{script}\n")
            program.chmod(0o755)
        linker = {"CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER": "/bin/true"}
        result = self.package(elf(HOST), "--dev", **linker)
        self.assertEqual(result.returncode, 0, result.stderr)
        packed = self.folder / "target" / "functions-dev"
        self.assertEqual([path.name for path in packed.iterdir()], [HOST])

    def test_a_folder_of_sam_build_is_checked_against_the_template(self):
        built = self.folder / "build" / "ConsumerFunction"
        built.mkdir(parents=True)
        (built / "bootstrap").write_bytes(elf("x86_64"))
        check = ["--check", str(self.folder / "build")]
        self.assertEqual(self.package(b"", *check, "--arch", "x86_64").returncode, 0)
        # The template's default.
        result = self.package(b"", *check)
        self.assertEqual(result.returncode, 1)
        self.assertIn("deploys it as arm64", result.stderr)
        self.assertIn("Architecture=x86_64", result.stderr)

    def test_a_zip_without_a_bootstrap_at_its_top_is_refused(self):
        folder = self.folder / "zips"
        folder.mkdir()
        with zipfile.ZipFile(folder / "payments.zip", "w") as archive:
            archive.writestr("payments/bootstrap", elf("arm64"))
        result = self.package(b"", "--check", str(folder))
        self.assertEqual(result.returncode, 1)
        self.assertIn("no bootstrap at its top", result.stderr)

    def test_a_folder_with_nothing_in_it_is_refused(self):
        result = self.package(b"", "--check", str(self.folder / "bin"))
        self.assertEqual(result.returncode, 1)
        self.assertIn("no bootstrap in", result.stderr)


if __name__ == "__main__":
    unittest.main()
