package capture

import "github.com/srcproof/srcproof/capture/wire"

func (d *Decoder) otherProto(p *wire.Packet, b []byte, n int) {
	if p.Tuple.Proto == wire.ProtoUDPLite {
		if d.ports(p, b, n) && len(b) >= 8 {
			p.Known |= wire.KnowTransport
			payload(p, b[8:], n-8, p.Attr&wire.IsFragment == 0)
		}
		return
	}
	p.Attr |= wire.IsOpaque
	p.Tunnel = wire.TunnelOther
}

func (d *Decoder) udpTunnel(p *wire.Packet, b []byte, n int) bool { return false }
func (d *Decoder) mpls(b []byte, n int) verdict                   { return notIP }
func (d *Decoder) pppoe(b []byte, n int) verdict                  { return notIP }
func (d *Decoder) nsh(b []byte, n int) verdict                    { return notIP }
