"""Run atheris on each target for SECONDS, and print and save failures: `python -m tests.fuzz SECONDS`."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main(argv: list[str]) -> int:
    seconds = int(argv[0]) if argv else 60
    if importlib.util.find_spec("atheris") is None:
        print("atheris is not installed here: run `make test-fuzz`", file=sys.stderr)
        return 2
    findings = Path("artifacts/fuzz")
    findings.mkdir(parents=True, exist_ok=True)
    failed = []
    for target in sorted(HERE.glob("fuzz_*.py")):
        corpus = HERE / "corpus" / target.stem.removeprefix("fuzz_")
        work = findings / target.stem
        work.mkdir(exist_ok=True)  # libFuzzer's new corpus files, next to the committed seeds
        seeds = [str(corpus)] if corpus.is_dir() else []
        print(f"==> {target.stem}, {seconds} s", flush=True)
        options = [f"-max_total_time={seconds}", f"-artifact_prefix={findings}/{target.stem}-", "-print_final_stats=1"]
        done = subprocess.run(
            [sys.executable, "-m", f"tests.fuzz.{target.stem}", *options, str(work), *seeds],
            stderr=subprocess.PIPE,
            text=True,
        )
        tail = done.stderr.splitlines()
        print("\n".join(tail[-40:] if done.returncode else [line for line in tail if "number_of_executed" in line]))
        if done.returncode:
            failed.append(target.stem)
    print(f"found something in: {', '.join(failed)}" if failed else "nothing found")
    return int(bool(failed))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
