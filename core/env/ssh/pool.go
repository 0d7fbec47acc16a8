package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/seed-009c0928/agent/core/env/posix"
)

const (
	// maxSessions is the maximum number of programs per connection. Servers allow
	// ten by default.
	maxSessions = 8
	dialTime    = 30 * time.Second // for connecting and logging in
	aliveTime   = 15 * time.Second // between keepalives, and for the answer to one
)

var errClosed = errors.New("the connection to the host is closed")

// pool is a pool of connections to a host. It opens a new one when all are full.
type pool struct {
	addr   string
	config *ssh.ClientConfig
	dial   func(ctx context.Context, network, addr string) (net.Conn, error)
	keys   *keys
	quit   chan struct{}
	wg     sync.WaitGroup

	mu     sync.Mutex
	conns  []*conn
	closed bool
}

var _ posix.Runner = (*pool)(nil)

// conn is a connection with its number of sessions.
type conn struct {
	client   *ssh.Client
	sessions int
	full     bool // takes no further sessions
}

func newPool(addr string, config *ssh.ClientConfig, dial func(ctx context.Context, network, addr string) (net.Conn, error), keys *keys) *pool {
	p := &pool{addr: addr, config: config, dial: dial, keys: keys, quit: make(chan struct{})}
	if dial == nil {
		p.dial = (&net.Dialer{}).DialContext
	}
	return p
}

// close ends all connections.
func (p *pool) close() error {
	p.mu.Lock()
	p.closed = true
	conns := p.conns
	p.conns = nil
	p.mu.Unlock()
	close(p.quit)
	for _, c := range conns {
		c.client.Close() // it may have ended already
	}
	p.wg.Wait()
	p.keys.close()
	return nil
}

// Run implements [posix.Runner].
func (p *pool) Run(ctx context.Context, argv []string, stdin io.Reader, stdout, stderr io.Writer) error {
	c, session, err := p.session(ctx)
	if err != nil {
		return err
	}
	defer p.release(c)
	defer session.Close()
	detach := context.AfterFunc(ctx, func() { session.Close() })
	defer detach()
	session.Stdout, session.Stderr = stdout, stderr
	in, err := session.StdinPipe()
	if err != nil {
		return err
	}
	script, input := posix.ByLine(argv, stdin)
	// The user's login shell, whichever it is, only has to start sh.
	if err := session.Start("exec sh -c '" + script + "'"); err != nil {
		return orDone(ctx, err)
	}
	go func() { // ends with the session, or in a Read of stdin, as Run says
		defer in.Close()
		_, _ = io.Copy(in, input) // a program need not read its input
	}()
	err = session.Wait()
	if _, ok := errors.AsType[*ssh.ExitError](err); ok {
		err = nil // the exit status does not matter
	}
	return orDone(ctx, err)
}

// orDone returns ctx's error instead of one that it caused.
func orDone(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// session opens a session on a connection with room for it. If a connection has
// died, it tries another one.
func (p *pool) session(ctx context.Context) (*conn, *ssh.Session, error) {
	for {
		c, fresh, err := p.take(ctx)
		if err != nil {
			return nil, nil, err
		}
		session, err := c.client.NewSession()
		if err == nil {
			return c, session, nil
		}
		p.drop(c)
		if fresh || ctx.Err() != nil {
			return nil, nil, orDone(ctx, fmt.Errorf("open a session on %s: %w", p.addr, err))
		}
	}
}

// take adds a session.
func (p *pool) take(ctx context.Context) (c *conn, fresh bool, err error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, false, errClosed
	}
	for _, c := range p.conns {
		if !c.full && c.sessions < maxSessions {
			c.sessions++
			p.mu.Unlock()
			return c, false, nil
		}
	}
	p.mu.Unlock()
	client, err := p.connect(ctx)
	if err != nil {
		return nil, false, err
	}
	c = &conn{client: client, sessions: 1}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		client.Close()
		return nil, false, errClosed
	}
	p.conns = append(p.conns, c)
	p.wg.Go(func() { p.watch(c) })
	return c, true, nil
}

// release removes a session.
func (p *pool) release(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.sessions--
}

// drop stops using a connection that takes no session. Its running programs
// continue: it stays open until the watch finds it dead, or until close.
func (p *pool) drop(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.full = true
	c.sessions--
}

// connect connects and logs in.
func (p *pool) connect(ctx context.Context) (*ssh.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	raw, err := p.dial(ctx, "tcp", p.addr)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", p.addr, err)
	}
	detach := context.AfterFunc(ctx, func() { raw.Close() })
	c, channels, requests, err := ssh.NewClientConn(raw, p.addr, p.config)
	if !detach() && err == nil {
		c.Close()
		err = ctx.Err()
	}
	if err != nil {
		raw.Close()
		return nil, orDone(ctx, fmt.Errorf("log in to %s as %s: %w", p.addr, p.config.User, err))
	}
	return ssh.NewClient(c, channels, requests), nil
}

// watch closes a connection that stops answering, so that nothing waits for it
// forever, and removes it when it has ended.
func (p *pool) watch(c *conn) {
	ended := make(chan struct{})
	go func() { // ends with the connection, which close ends
		_ = c.client.Wait()
		close(ended)
	}()
	for p.alive(c, ended) {
		// until it is not
	}
	c.client.Close()
	<-ended
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, other := range p.conns {
		if other == c {
			p.conns = append(p.conns[:i:i], p.conns[i+1:]...)
			return
		}
	}
}

// alive waits for a while and then sends a keepalive.
func (p *pool) alive(c *conn, ended <-chan struct{}) bool {
	timer := time.NewTimer(aliveTime)
	defer timer.Stop()
	select {
	case <-ended:
		return false
	case <-p.quit:
		return false
	case <-timer.C:
	}
	answer := make(chan error, 1)
	go func() { // ends with the answer or the connection
		_, _, err := c.client.SendRequest("keepalive@openssh.com", true, nil)
		answer <- err
	}()
	timer.Reset(aliveTime)
	select {
	case err := <-answer:
		return err == nil
	case <-p.quit:
		return false
	case <-timer.C:
		return false
	}
}
