"""What all systems are given to do, one kind a file."""

from __future__ import annotations

from benchmarks.peers.workloads.base import Workload
from benchmarks.peers.workloads.drain import Drain
from benchmarks.peers.workloads.enqueue import Enqueue
from benchmarks.peers.workloads.filled import Filled
from benchmarks.peers.workloads.idle import Idle
from benchmarks.peers.workloads.lateness import Burst, Lateness
from benchmarks.peers.workloads.schedules import Schedules
from benchmarks.peers.workloads.start import Starting

WORKLOADS: dict[str, Workload] = {
    workload.name: workload
    for workload in (Enqueue(), Drain(), Starting(), Lateness(), Burst(), Filled(), Schedules(), Idle())
}
