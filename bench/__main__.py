"""`python -m bench [NAME [ARGUMENTS]]`: run one benchmark, or all of them one after the other."""

from __future__ import annotations

import importlib
import sys

BENCHES = {
    "graph": "1,000-node graph, start plus stop, against bare nurseries",
    "rpc": "unary and streaming calls against grpclib and grpcio.aio",
    "readings": "a real call, GetReadings, against grpclib and grpcio: 1, 2 and 10 connections, gRPC-Web",
    "modules": "calls to resources of modules, against resources of the server and a proxy on grpcio.aio",
    "logs": "log lines with rules and deduplication against the standard library's logging",
    "hal": "I2C, GPIO and serial lines against the raw libraries",
    "control_loop": "a 200 Hz control loop during 1,000 calls a second, against a bare script",
    "fairness": "one client's calls while another has 1,000 in flight, against alone",
    "capture": "captured readings to files, against bare protobuf and a file",
    "propagation": "a configuration saved in machine-cloud until it runs, with 50 machines connected",
    "cloud": "capacity of machine-cloud: machines, log lines and readings, on SQLite and PostgreSQL",
    "cloud_pages": "the pages of machine-cloud with 1,000 machines and 100,000 log lines: time, bytes, queries",
    "cloud_rollouts": "a rollout of a fragment to 5,000 machines: its start, each machine, pages, and the way back",
    "cloud_machines": "the list of 5,000 machines, its update while it is open, and work on many of them",
    "cloud_large": "pages, bulk jobs and a rollout of a running cloud with 5,000 machines that are connected and poll",
    "cloud_stored": "questions to the tables of machine-cloud as more is stored, against statements of before",
    "segments": "readings in Parquet segments with a catalog in our database: size, time and memory of questions",
    "cloud_sealed": "readings that machine-cloud moves to Parquet files: size, sealing, pages, plots, and DuckDB",
    "cloud_fleet": "pages, plots, SQL and retention of a cloud that `machine-cloud simulate` has filled",
    "cloud_sql": "SQL of machine-cloud over Parquet files and recent rows, against DuckDB alone",
    "tenants": "how one tenant of a cloud is affected by another that sends everything that is allowed",
    "largest": "the longest step of the event loop for the largest input of each kind, against 20 ms",
    "largest_machine": "the same for machine-server: requests, replies and HTTP with JSON",
    "ftdc": "the cost of counting calls and of sampling all statistics",
    "footprint": "machine-server: start-up time, resident memory, idle CPU",
    "commands": "processor time of commands of `machine`, against `import trio`",
    "netlink": "requests to the kernel's rtnetlink, against pyroute2 on asyncio",
    "video": "video of a camera for three viewers: processor time, delay, frames",
    "plots": "plots of a year of readings in a browser: first chart, frames per second",
    "control_page": "from a hand on the page Control to the motor, against a Python program",
    "peers": "WebRTC engines: memory, processor time of connections, 8 MiB of messages",
    "through": "calls to a machine through the cloud, against direct calls",
    "waiting": "machines that wait for callers at one cloud: memory, idle CPU, time of a call",
    "webrtc": "calls of the Python SDK over WebRTC, direct and relayed, against TCP",
    "training": "accuracy of trained models on pictures that they have not seen, against two baselines",
    "training_finetune": "fine-tuning with PyTorch against the trainer of machine-cloud: accuracy, processor time",
    "training_detection": "trained detectors on scenes that they have not seen: mAP50, mAP75, against two baselines",
    "training_queue": "training jobs: first log line, start of a cloud, cost with 10,000 jobs, turns of organizations",
    "agent": "machine-agent: start-up time, resident memory, idle CPU",
}


def main(argv: list[str]) -> int:
    if argv and argv[0] in ("-h", "--help"):
        print(__doc__)
        for name, what in BENCHES.items():
            print(f"  {name:10} {what}")
        return 0
    if argv and argv[0] not in BENCHES:
        print(f"{argv[0]!r} is not a benchmark: use one of {', '.join(BENCHES)}", file=sys.stderr)
        return 2
    status = 0
    for name in argv[:1] or BENCHES:
        status |= importlib.import_module(f"bench.{name}").main(argv[1:])
    return status


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
