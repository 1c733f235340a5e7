async def test_look(guest):
    done = await guest.run(
        "uname -r; for m in lm75 tmp102 ina2xx ina2xx-adc ina238 sht3x bmp280-i2c ti-ads1015 ads7828 inv-mpu6050-i2c at24 pwm-pca9685 mcp320x spidev; do printf '%s: ' $m; modinfo -F filename $m 2>&1 | head -1; done; grep -E 'INA2XX|PCA9685|SPIDEV|MCP320' /boot/config-* 2>/dev/null; ls /lib/modules/*/kernel/drivers/hwmon | head -200 | tr '\\n' ' '; ls /lib/modules/*/kernel/drivers/iio /lib/modules/*/kernel/drivers/iio/adc; ls /sys/bus/i2c/devices",
        check=False,
    )
    print(done.output)
