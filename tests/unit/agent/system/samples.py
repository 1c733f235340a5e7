"""Texts of distributions: /etc/os-release and the output of `apt-cache policy`."""

from typing import Final

DEBIAN_11: Final = """\
PRETTY_NAME="Debian GNU/Linux 11 (bullseye)"
NAME="Debian GNU/Linux"
VERSION_ID="11"
VERSION="11 (bullseye)"
VERSION_CODENAME=bullseye
ID=debian
HOME_URL="https://www.debian.org/"
"""
DEBIAN_12: Final = DEBIAN_11.replace("11", "12").replace("bullseye", "bookworm")
DEBIAN_13: Final = """\
PRETTY_NAME="Debian GNU/Linux 13 (trixie)"
NAME="Debian GNU/Linux"
VERSION_ID="13"
VERSION="13 (trixie)"
VERSION_CODENAME=trixie
DEBIAN_VERSION_FULL=13.1
ID=debian
HOME_URL="https://www.debian.org/"
"""
RASPBIAN_11: Final = """\
PRETTY_NAME="Raspbian GNU/Linux 11 (bullseye)"
NAME="Raspbian GNU/Linux"
VERSION_ID="11"
VERSION="11 (bullseye)"
VERSION_CODENAME=bullseye
ID=raspbian
ID_LIKE=debian
HOME_URL="http://www.raspbian.org/"
"""
UBUNTU_22: Final = """\
PRETTY_NAME="Ubuntu 22.04.5 LTS"
NAME="Ubuntu"
VERSION_ID="22.04"
VERSION="22.04.5 LTS (Jammy Jellyfish)"
VERSION_CODENAME=jammy
ID=ubuntu
ID_LIKE=debian
UBUNTU_CODENAME=jammy
"""
UBUNTU_24: Final = """\
PRETTY_NAME="Ubuntu 24.04.1 LTS"
NAME="Ubuntu"
VERSION_ID="24.04"
VERSION="24.04.1 LTS (Noble Numbat)"
VERSION_CODENAME=noble
ID=ubuntu
ID_LIKE=debian
UBUNTU_CODENAME=noble
LOGO=ubuntu-logo
"""
FEDORA: Final = """\
NAME="Fedora Linux"
VERSION="41 (Server Edition)"
RELEASE_TYPE=stable
ID=fedora
VERSION_ID=41
VERSION_CODENAME=""
PLATFORM_ID="platform:f41"
PRETTY_NAME="Fedora Linux 41 (Server Edition)"
ANSI_COLOR="0;38;2;60;110;180"
"""

POLICY_DEBIAN: Final = """\
Package files:
 100 /var/lib/dpkg/status
     release a=now
 500 http://mirror.example.com/debian-security bookworm-security/main amd64 Packages
     release v=12,o=Debian,a=oldstable-security,n=bookworm-security,l=Debian-Security,c=main,b=amd64
     origin mirror.example.com
 100 http://mirror.example.com/debian bookworm-backports/main amd64 Packages
     release o=Debian Backports,a=oldstable-backports,n=bookworm-backports,l=Debian Backports,c=main,b=amd64
     origin mirror.example.com
 500 http://mirror.example.com/debian bookworm/non-free amd64 Packages
     release v=12.15,o=Debian,a=oldstable,n=bookworm,l=Debian,c=non-free,b=amd64
     origin mirror.example.com
 500 http://mirror.example.com/debian bookworm/main amd64 Packages
     release v=12.15,o=Debian,a=oldstable,n=bookworm,l=Debian,c=main,b=amd64
     origin mirror.example.com
Pinned packages:
     nano -> 7.2-1 with priority 990
"""
POLICY_RASPBERRY: Final = """\
Package files:
 100 /var/lib/dpkg/status
     release a=now
 500 http://archive.raspberrypi.com/debian bookworm/main arm64 Packages
     release o=Raspberry Pi Foundation,a=stable,n=bookworm,l=Raspberry Pi Foundation,c=main,b=arm64
     origin archive.raspberrypi.com
 500 http://mirror.example.com/debian-security bookworm-security/main arm64 Packages
     release v=12,o=Debian,a=stable-security,n=bookworm-security,l=Debian-Security,c=main,b=arm64
     origin mirror.example.com
Pinned packages:
"""
POLICY_RASPBIAN: Final = """\
Package files:
 100 /var/lib/dpkg/status
     release a=now
 500 http://raspbian.raspberrypi.org/raspbian bullseye/main armhf Packages
     release o=Raspbian,a=oldstable,n=bullseye,l=Raspbian,c=main,b=armhf
     origin raspbian.raspberrypi.org
Pinned packages:
"""
POLICY_UBUNTU: Final = """\
Package files:
 100 /var/lib/dpkg/status
     release a=now
 510 https://esm.ubuntu.com/apps/ubuntu jammy-apps-security/main amd64 Packages
     release v=22.04,o=UbuntuESMApps,a=jammy-apps-security,n=jammy,l=UbuntuESMApps,c=main,b=amd64
     origin esm.ubuntu.com
 500 http://security.ubuntu.com/ubuntu jammy-security/main amd64 Packages
     release v=22.04,o=Ubuntu,a=jammy-security,n=jammy,l=Ubuntu,c=main,b=amd64
     origin security.ubuntu.com
 100 http://archive.ubuntu.com/ubuntu jammy-backports/main amd64 Packages
     release v=22.04,o=Ubuntu,a=jammy-backports,n=jammy,l=Ubuntu,c=main,b=amd64
     origin archive.ubuntu.com
 500 http://archive.ubuntu.com/ubuntu jammy/main amd64 Packages
     release v=22.04,o=Ubuntu,a=jammy,n=jammy,l=Ubuntu,c=main,b=amd64
     origin archive.ubuntu.com
Pinned packages:
"""
POLICY_CUSTOM: Final = """\
Package files:
 500 https://dl.example.com/linux/chrome/deb stable/main amd64 Packages
     release v=1.0,o=Google, Inc.,a=stable,n=stable,l=Google,c=main,b=amd64
     origin dl.example.com
 500 https://flat.example.com/apt ./ Packages
     release c=
     origin flat.example.com
 500 file:/srv/apt ./ Packages
     release c=
     origin 
   1 https://experimental.example.com/debian rc/main amd64 Packages
     release o=Experimental,a=rc,n=rc,c=main,b=amd64
     origin experimental.example.com
  -1 https://blocked.example.com/debian stable/main amd64 Packages
     release o=Blocked,a=stable,n=stable,c=main,b=amd64
     origin blocked.example.com
Pinned packages:
"""  # noqa: W291
