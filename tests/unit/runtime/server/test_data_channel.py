"""A client of a whole machine over a data channel: sessions, and the stop when the client has gone."""

from __future__ import annotations

from functools import partial

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from rpc.api.messages import load
from rpc.call import ServerCore
from rpc.carrier import Identity, Peer
from rpc.datachannel.client import CallChannel
from rpc.datachannel.server import serve_channel
from rpc.peers.memory import memory_channels
from runtime.server.memory import open_machine

DOCUMENT = {"components": [{"name": "left", "api": "rdk:component:motor", "model": "fake"}]}


async def test_a_client_that_leaves_is_noticed_and_its_motor_stopped(autojump_clock: MockClock) -> None:
    robot = load("robot.v1.robot_grpc").RobotServiceStub
    motor = load("component.motor.v1.motor_grpc").MotorServiceStub
    start = load("robot.v1.robot_pb2").StartSessionRequest()
    turn = load("component.motor.v1.motor_pb2").SetPowerRequest(name="left", power_pct=0.5)
    async with open_machine(DOCUMENT) as memory, memory_channels() as (near, far), trio.open_nursery() as nursery:
        await memory.graph.settled()
        core = ServerCore(memory.serving.router)
        peer, identity = Peer(("192.0.2.7", 4000)), Identity("key-1", "api-key")
        nursery.start_soon(partial(serve_channel, far, core, peer=peer, identity=identity))
        async with CallChannel(near) as channel:
            sid = (await robot(channel).StartSession(start)).id
            await motor(channel).SetPower(turn, metadata={"viam-sid": sid, "authorization": "Bearer other"})
            session = memory.machine.traffic.sessions.find(sid, "key-1")
            assert session.peer == "192.0.2.7:4000"
            assert memory.machine.traffic.sessions.commanded_by(session) == ("rdk:component:motor/left",)
            assert await memory.client().call("rdk:component:motor", "left", "is_moving") is True
            assert not session.closed
        await wait_all_tasks_blocked()
        assert session.closed, "the end of the channel is expected silence, as over HTTP/2"
        await trio.sleep(session.window + 1)
        assert session.ended
        assert await memory.client().call("rdk:component:motor", "left", "is_moving") is False
        nursery.cancel_scope.cancel()
