package sandbox

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/netip"
	"time"
)

// SOCKS version 5, RFC 1928.
const (
	socksVersion  = 5
	socksNoAuth   = 0
	socksNoMethod = 0xff
	socksConnect  = 1
	socksIPv4     = 1
	socksName     = 3
	socksIPv6     = 4

	socksOK          = 0
	socksNotAllowed  = 2
	socksUnreachable = 4
	socksBadCommand  = 7
	socksBadAddress  = 8
)

// socks serves one connection. It resolves names, not the client, so that they
// can be checked against the allow-list.
func (p *proxy) socks(c net.Conn, in *bufio.Reader) {
	host, port, answer, err := socksRequest(c, in)
	if err != nil {
		if answer != socksOK {
			_, _ = c.Write(socksReply(answer)) // the connection is closed anyway
		}
		return
	}
	_ = c.SetReadDeadline(time.Time{})
	target, err := p.dial(p.ctx, host, port)
	if err != nil {
		answer = socksUnreachable
		if errors.Is(err, errRefused) {
			answer = socksNotAllowed
		}
		_, _ = c.Write(socksReply(answer))
		return
	}
	defer target.Close()
	if _, err := c.Write(socksReply(socksOK)); err == nil {
		p.join(c, in, target)
	}
}

var errSocks = errors.New("malformed SOCKS request")

// socksRequest reads a client's greeting and request, and answers the greeting.
// On an error, answer is the reply code to send, or 0 for none.
func socksRequest(out io.Writer, in *bufio.Reader) (host string, port uint16, answer byte, err error) {
	head := make([]byte, 2)
	if _, err := io.ReadFull(in, head); err != nil {
		return "", 0, 0, err
	}
	methods := make([]byte, head[1])
	if _, err := io.ReadFull(in, methods); err != nil {
		return "", 0, 0, err
	}
	method := byte(socksNoMethod)
	for _, m := range methods {
		if m == socksNoAuth {
			method = socksNoAuth
		}
	}
	if _, err := out.Write([]byte{socksVersion, method}); err != nil || method == socksNoMethod {
		return "", 0, 0, errors.Join(errSocks, err)
	}
	request := make([]byte, 4)
	if _, err := io.ReadFull(in, request); err != nil {
		return "", 0, 0, err
	}
	if request[0] != socksVersion || request[1] != socksConnect {
		return "", 0, socksBadCommand, errSocks
	}
	if host, answer, err = socksHost(in, request[3]); err != nil {
		return "", 0, answer, err
	}
	if _, err := io.ReadFull(in, head); err != nil {
		return "", 0, 0, err
	}
	return host, uint16(head[0])<<8 | uint16(head[1]), 0, nil
}

// socksHost reads an address of the given type.
func socksHost(in *bufio.Reader, kind byte) (host string, answer byte, err error) {
	size := 0
	switch kind {
	case socksIPv4:
		size = 4
	case socksIPv6:
		size = 16
	case socksName:
		n, err := in.ReadByte()
		if err != nil {
			return "", 0, err
		}
		size = int(n)
	default:
		return "", socksBadAddress, errSocks
	}
	b := make([]byte, size)
	if _, err := io.ReadFull(in, b); err != nil {
		return "", 0, err
	}
	if kind == socksName {
		return string(b), 0, nil
	}
	addr, _ := netip.AddrFromSlice(b)
	return addr.String(), 0, nil
}

// socksReply is a reply without an address, which no client needs.
func socksReply(answer byte) []byte {
	return []byte{socksVersion, answer, 0, socksIPv4, 0, 0, 0, 0, 0, 0}
}
