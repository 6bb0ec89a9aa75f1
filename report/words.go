package report

import "strconv"

// linkWord is a link type as a person who uses tcpdump names it, or its LINKTYPE_ name (tcpdump.org/linktypes.html).
func linkWord(n uint32) string {
	switch n {
	case 0:
		return "NULL"
	case 1:
		return "Ethernet"
	case 6:
		return "IEEE802_5"
	case 7:
		return "ARCNET_BSD"
	case 8:
		return "SLIP"
	case 9:
		return "PPP"
	case 10:
		return "FDDI"
	case 12, 14, 101:
		return "raw IP"
	case 50:
		return "PPP_HDLC"
	case 51:
		return "PPP_ETHER"
	case 104:
		return "C_HDLC"
	case 105:
		return "802.11"
	case 107:
		return "FRELAY"
	case 108:
		return "LOOP"
	case 113:
		return "SLL"
	case 114:
		return "LTALK"
	case 117:
		return "PFLOG"
	case 119:
		return "802.11 with Prism header"
	case 122:
		return "IP_OVER_FC"
	case 127:
		return "802.11 radiotap"
	case 163:
		return "802.11 with AVS header"
	case 187:
		return "BLUETOOTH_HCI_H4"
	case 189:
		return "USB_LINUX"
	case 192:
		return "PPI"
	case 195:
		return "IEEE802_15_4_WITHFCS"
	case 201:
		return "BLUETOOTH_HCI_H4_WITH_PHDR"
	case 204:
		return "PPP_WITH_DIR"
	case 220:
		return "USB_LINUX_MMAPPED"
	case 227:
		return "CAN_SOCKETCAN"
	case 228:
		return "raw IPv4"
	case 229:
		return "raw IPv6"
	case 230:
		return "IEEE802_15_4_NOFCS"
	case 239:
		return "NFLOG"
	case 247:
		return "INFINIBAND"
	case 249:
		return "USBPCAP"
	case 253:
		return "NETLINK"
	case 258:
		return "PKTAP"
	case 271:
		return "VSOCK"
	case 276:
		return "SLL2"
	}
	if n >= 147 && n <= 162 {
		return "USER" + strconv.FormatUint(uint64(n-147), 10)
	}
	return "link type " + strconv.FormatUint(uint64(n), 10)
}
