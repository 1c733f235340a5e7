"""Simulated converters MCP3004/MCP3008 (Microchip DS21295D) and MCP3204/MCP3208 (DS21298E) on SPI, bit by bit."""

from __future__ import annotations


class Mcp3008Target:
    """A converter; `volts` has the voltage of each channel, `reference` is the voltage at VREF."""

    def __init__(self, *, channels: int = 8, bits: int = 10, reference: float = 3.3) -> None:
        self.volts = [0.0] * channels
        self.reference = reference
        self.bits = bits

    def transfer(self, data: bytes) -> bytes:
        """Transfer the data of one chip select; the output is floating and pulled up until the null bit."""
        received = [byte >> bit & 1 for byte in data for bit in range(7, -1, -1)]
        out = [1] * len(received)
        if 1 in received:
            start = received.index(1)
            command = received[start + 1 : start + 5]
            if len(command) == 4:
                single, channel = command[0], command[1] << 2 | command[2] << 1 | command[3]
                value = self._convert(channel, single=bool(single))
                answer = [0] + [value >> bit & 1 for bit in range(self.bits - 1, -1, -1)]
                # LSB first after the MSB-first value, then zeros (section 5.0, figure 5-2 and 5-3)
                answer += [value >> bit & 1 for bit in range(1, self.bits)]
                first = start + 6  # one clock of sampling after the last command bit, then the null bit
                for index in range(first, len(out)):
                    out[index] = answer[index - first] if index - first < len(answer) else 0
        return bytes(
            sum(bit << (7 - place) for place, bit in enumerate(out[index : index + 8]))
            for index in range(0, len(out), 8)
        )

    def _convert(self, channel: int, *, single: bool) -> int:
        channel %= len(self.volts)  # a chip with four channels ignores D2
        volts = self.volts[channel] if single else self.volts[channel] - self.volts[channel ^ 1]
        counts = 1 << self.bits
        return max(0, min(counts - 1, int(volts / self.reference * counts)))
