"""NMEA 0183: the pure parser, and the movement sensor that uses it."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import wait_all_tasks_blocked

from engine.components.sensing.movement_sensor import MovementSensor
from engine.resource import Unsupported
from hal.nmea import Receiver, checksum, parse, sentence
from schema.errors import ErrorKind, MachineError
from tests.unit.models.builtin.support import Bench

# From u-blox 8 / M8 Receiver Description UBX-13003221, section NMEA Protocol.
GGA = b"$GPGGA,092725.00,4717.11399,N,00833.91590,E,1,08,1.01,499.6,M,48.0,M,,*5B"
GST = b"$GPGST,082356.00,1.8,,,,1.7,1.3,2.2*7E"
VTG_AT_REST = b"$GPVTG,77.52,T,,M,0.004,N,0.008,K,A*06"
GSV = b"$GPGSV,3,1,09,09,,,17,10,,,40,12,,,49,13,,,35,1*6F"
# The standard examples of NMEA 0183 2.0, as in gpsd's "NMEA Revealed".
RMC = b"$GPRMC,123519,A,4807.038,N,01131.000,E,022.4,084.4,230394,003.1,W*6A"
GSA = b"$GPGSA,A,3,04,05,,09,12,,,24,,,,,2.5,1.3,2.1*39"
VTG = b"$GPVTG,054.7,T,034.4,M,005.5,N,010.2,K*48"
# Output of a u-blox NEO-6M indoors.
NO_FIX = (
    b"$GPRMC,,V,,,,,,,,,,N*53",
    b"$GPVTG,,,,,,,,,N*30",
    b"$GPGGA,,,,,,0,00,99.99,,,,,,*48",
    b"$GPGSA,A,1,,,,,,,,,,,,,99.99,99.99,99.99*30",
    b"$GPGSV,1,1,00*79",
)


def receiver_after(*lines: bytes, now: float = 0.0) -> Receiver:
    receiver = Receiver()
    for line in lines:
        receiver.feed(line, now)
    assert not receiver.rejected
    return receiver


def get(receiver: Receiver, name: str) -> object:
    return receiver.get(name, 0.0, 1.0)


def test_a_fix_of_gga() -> None:
    receiver = receiver_after(GGA)
    latitude, longitude = receiver.get("position", 0.0, 1.0)
    assert latitude == pytest.approx(47 + 17.11399 / 60)
    assert longitude == pytest.approx(8 + 33.91590 / 60)
    assert [get(receiver, n) for n in ("quality", "satellites_used", "hdop", "altitude")] == [1, 8, 1.01, 499.6]


def test_rmc_has_speed_course_and_date() -> None:
    receiver = receiver_after(RMC)
    assert get(receiver, "speed") == pytest.approx(22.4 * 1852 / 3600)
    assert get(receiver, "course") == 84.4
    assert get(receiver, "utc") == datetime(1994, 3, 23, 12, 35, 19, tzinfo=UTC)
    assert get(receiver, "quality") == 1


def test_gga_tells_the_quality_more_exactly_than_rmc() -> None:
    gga = sentence("GNGGA,123519.00,4807.038,N,01131.000,E,4,14,0.6,545.4,M,46.9,M,1.0,0000")
    assert get(receiver_after(gga, RMC), "quality") == 4
    assert get(receiver_after(sentence("GNRMC,123519,A,4807.038,N,01131.000,E,0.0,,230394,,,R,V")), "quality") == 4


def test_the_other_sentences() -> None:
    receiver = receiver_after(GSA, VTG, GST, sentence("HEHDT,123.456,T"))
    assert [get(receiver, n) for n in ("pdop", "hdop", "vdop")] == [2.5, 1.3, 2.1]
    assert get(receiver, "speed") == pytest.approx(5.5 * 1852 / 3600)
    assert get(receiver, "course") == 54.7
    assert get(receiver, "error") == (1.7, 1.3, 2.2)
    assert get(receiver, "heading") == 123.456
    assert get(receiver_after(sentence("GPHDT,360.0,T")), "heading") == 0


def test_south_and_west_are_negative() -> None:
    south_west = sentence("GPGGA,1,3351.500,S,15112.400,W,1,8,1,5,M,,M,,")
    assert get(receiver_after(south_west), "position") == (-(33 + 51.5 / 60), -(151 + 12.4 / 60))


def test_satellites_in_view_are_counted_by_system_and_not_twice_by_signal() -> None:
    receiver = receiver_after(
        GSV,
        sentence("GPGSV,2,1,07,09,,,17,10,,,40,12,,,49,13,,,35,6"),
        sentence("GLGSV,1,1,03,65,,,17,66,,,40,67,,,49,1"),
        sentence("GAGSV,1,1,00,7"),
    )
    assert receiver.in_view(0.0, 1.0) == {"gps": 9, "glonass": 3, "galileo": 0}
    assert receiver.in_view(2.0, 1.0) == {}


def test_a_lost_fix_takes_the_position_away() -> None:
    for last in (NO_FIX[0], NO_FIX[2]):
        receiver = receiver_after(GGA, RMC, last)
        assert [get(receiver, name) for name in ("quality", "position", "altitude", "speed")] == [0, None, None, None]


def test_old_sentences_do_not_count() -> None:
    receiver = receiver_after(GGA)
    assert receiver.get("quality", 5.0, 5.0) == 1
    assert receiver.get("quality", 5.1, 5.0) is None
    assert receiver.age("quality", 5.1) == 5.1
    assert receiver.age("heading", 5.1) is None


def test_a_sentence_is_found_behind_bytes_of_other_protocols() -> None:
    ubx = bytes([0xB5, 0x62, 0x01, 0x07, 0x24, 0x24, 0xFF])  # two $ bytes look like the start of a sentence
    assert parse(ubx + GGA + b"\r").kind == "GGA"
    assert parse(b"$GPRMC,12351" + GGA).kind == "GGA"  # a truncated sentence, then a complete one
    assert parse(b"$PUBX,00*33")[:2] == ("P", "UBX")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"", "no sentence"),
        (GGA[:-1], "wrong checksum"),
        (GGA[:-3], "no checksum"),
        (GGA.replace(b"4717", b"4718"), "wrong checksum"),
        (b"$" + b"A" * 300 + b"*00", "no sentence"),
        (sentence("GPGGA,1,4799.0,N,00833.9,E,1,08,1,5,M,,M,,"), "malformed position"),
        (sentence("GPGGA,1,9117.0,N,00833.9,E,1,08,1,5,M,,M,,"), "malformed position"),
        (sentence("GPGGA,1,4717.0,X,00833.9,E,1,08,1,5,M,,M,,"), "malformed position"),
        (sentence("GPGGA,1,4717.0,N,00833.9,E,1,08,nan,5,M,,M,,"), "malformed number"),
        (sentence("GPRMC,1,A,4717.0,N,00833.9,E,1,400,230394,,"), "malformed angle"),
        (sentence("GPRMC,123519,A,4717.0,N,00833.9,E,1,40,310294,,"), "malformed time"),
        (sentence("gp,1"), "no address"),
    ],
)
def test_bad_sentences_are_counted_by_reason(line: bytes, reason: str) -> None:
    receiver = Receiver()
    receiver.feed(line, 0.0)
    assert (receiver.sentences, receiver.rejected) == (0, {reason: 1})


FIELD = st.one_of(
    st.sampled_from(["", "A", "V", "N", "S", "E", "1", "0", "9" * 40, "-1", "4717.1", "T", "1e9", "NaN"]),
    st.text(max_size=6),
)


@given(
    st.sampled_from(["GPGGA", "GNRMC", "GPVTG", "GNGSA", "GLGSV", "GPGST", "HEHDT", "GPZDA", "PUBX"]),
    st.lists(FIELD, max_size=22),
)
def test_no_fields_crash_it(address: str, fields: list[str]) -> None:
    body = ",".join([address, *fields]).encode(errors="replace")
    receiver = Receiver()
    receiver.feed(b"$%s*%02X" % (body, checksum(body)), 0.0)
    assert receiver.sentences + sum(receiver.rejected.values()) == 1
    if (position := receiver.get("position", 0.0, 1.0)) is not None:
        assert abs(position[0]) <= 91
        assert abs(position[1]) <= 181


@given(st.binary(max_size=300))
def test_no_bytes_crash_it(data: bytes) -> None:
    Receiver().feed(data, 0.0)


@given(st.integers(0, len(GGA) - 1), st.integers(1, 255))
def test_no_single_wrong_byte_gets_through(at: int, change: int) -> None:
    wrong = bytearray(GGA)
    wrong[at] ^= change
    receiver = Receiver()
    receiver.feed(bytes(wrong), 0.0)
    assert receiver.get("position", 0.0, 1.0) in (None, (47 + 17.11399 / 60, 8 + 33.9159 / 60))


# ---- the movement sensor


async def sensor_on(bench: Bench, **attributes: object) -> tuple[MovementSensor, object]:
    port = bench.hardware.plug_serial("/dev/ttyS0", in_memory=True)
    sensor: MovementSensor = await bench.add(
        "movement_sensor", "it", {"path": "/dev/ttyS0", **attributes}, model="nmea"
    )
    assert port.settings is not None
    assert port.settings.baud == 9600

    async def say(*lines: bytes) -> None:
        await port.far.send_all(b"".join(line.rstrip() + b"\r\n" for line in lines))
        await wait_all_tasks_blocked()

    return sensor, say


async def test_readings_of_a_receiver_with_a_fix(bench: Bench, autojump_clock: object) -> None:
    sensor, say = await sensor_on(bench)
    await say(GGA[30:], GGA, GSA, VTG, GST, GSV, b"\x00\xff\xb5b garbage", RMC)  # type: ignore[operator]
    readings = await sensor.get_readings()
    assert readings["position"].latitude == pytest.approx(48 + 7.038 / 60)
    assert readings["altitude"] == 499.6
    assert readings["fix"] == "GPS"
    assert readings["satellites_used"] == 8
    assert readings["satellites_in_view_gps"] == 9
    assert readings["compass"] == 84.4
    velocity = await sensor.get_linear_velocity()
    speed = 22.4 * 1852 / 3600
    assert velocity.x == pytest.approx(speed * math.sin(math.radians(84.4)))
    assert velocity.y == pytest.approx(speed * math.cos(math.radians(84.4)))
    accuracy = await sensor.get_accuracy()
    assert (accuracy.position_hdop, accuracy.position_vdop, accuracy.position_nmea_gga_fix) == (1.3, 2.1, 1)
    assert accuracy.accuracy == {"latitude_m": 1.7, "longitude_m": 1.3, "altitude_m": 2.2}
    assert await sensor.get_status() == {"sentences": 6, "rejected": {"no sentence": 2}}
    with pytest.raises(Unsupported):
        await sensor.get_angular_velocity()


async def test_without_a_fix_it_says_so(bench: Bench, autojump_clock: object) -> None:
    sensor, say = await sensor_on(bench)
    with pytest.raises(MachineError, match=r"no NMEA sentence.*baud rate") as caught:
        await sensor.get_position()
    assert caught.value.kind is ErrorKind.UNAVAILABLE
    await say(*NO_FIX)  # type: ignore[operator]
    for read in (sensor.get_position, sensor.get_linear_velocity, sensor.get_compass_heading, sensor.get_readings):
        with pytest.raises(MachineError, match=r"no fix; it sees 0 satellites.*view of the sky") as caught:
            await read()
        assert caught.value.kind is ErrorKind.UNAVAILABLE
    assert (await sensor.get_accuracy()).position_nmea_gga_fix == 0


async def test_old_data_is_refused(bench: Bench, autojump_clock: object) -> None:
    sensor, say = await sensor_on(bench, max_age_s=2.0)
    await say(GGA)  # type: ignore[operator]
    await trio.sleep(2)
    assert (await sensor.get_position()).altitude_m == 499.6
    await trio.sleep(1)
    with pytest.raises(MachineError, match=r"3\.0 s old, more than max_age_s"):
        await sensor.get_position()


async def test_at_rest_it_has_no_course(bench: Bench, autojump_clock: object) -> None:
    sensor, say = await sensor_on(bench)
    await say(GGA, sentence("GNVTG,,T,,M,0.010,N,0.019,K,A"))  # type: ignore[operator]
    velocity = await sensor.get_linear_velocity()
    assert (velocity.x, velocity.y) == (0, 0)
    with pytest.raises(MachineError, match="at rest it has none"):
        await sensor.get_compass_heading()
    assert "compass" not in await sensor.get_readings()
    await say(sentence("HEHDT,90.0,T"), VTG_AT_REST)  # type: ignore[operator]
    assert await sensor.get_compass_heading() == 90.0


async def test_a_fix_without_height_has_no_altitude(bench: Bench, autojump_clock: object) -> None:
    sensor, say = await sensor_on(bench)
    await say(RMC)  # type: ignore[operator]
    assert math.isnan((await sensor.get_position()).altitude_m)
    assert "altitude" not in await sensor.get_readings()


async def test_it_has_its_usual_name_too(bench: Bench, autojump_clock: object) -> None:
    bench.hardware.plug_serial("/dev/ttyS0", in_memory=True)
    sensor = await bench.add("movement_sensor", "it", {"path": "/dev/ttyS0"}, model="gps-nmea")
    assert (await sensor.get_properties()).position_supported
