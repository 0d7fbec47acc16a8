package jetstream

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/seed-009c0928/agent/core/event"
)

// node is a server of a cluster, in a separate process.
type node struct {
	options ServeOptions
	command *exec.Cmd
}

func (n *node) start(t *testing.T) {
	t.Helper()
	text, err := json.Marshal(n.options)
	if err != nil {
		t.Fatal(err)
	}
	n.command = exec.Command(os.Args[0])
	n.command.Env = append(os.Environ(), nodeEnv+"="+string(text))
	n.command.Stderr = os.Stderr
	in, err := n.command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := n.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := n.command.Start(); err != nil {
		t.Fatal(err)
	}
	command := n.command
	t.Cleanup(func() {
		_ = in.Close()
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the server says %q, %v", line, err)
	}
}

func (n *node) url() string { return fmt.Sprintf("nats://127.0.0.1:%d", n.options.Port) }

// kill ends the process without warning.
func (n *node) kill(t *testing.T) {
	t.Helper()
	if err := n.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = n.command.Wait()
}

// ports returns free ports.
func ports(t *testing.T, n int) []int {
	t.Helper()
	list := make([]int, n)
	for i := range list {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		list[i] = l.Addr().(*net.TCPAddr).Port
	}
	return list
}

// TestCluster kills servers of a cluster of three while a session is written: the
// stream's leader, then another. What was acknowledged stays, once, and the writer
// continues.
func TestCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts three servers and kills them")
	}
	free := ports(t, 6)
	var nodes []*node
	var routes, urls []string
	for _, p := range free[3:] {
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", p))
	}
	for i := range 3 {
		n := &node{options: ServeOptions{
			Dir: filepath.Join(t.TempDir(), "node"), Name: fmt.Sprintf("n%d", i+1), Cluster: "test",
			Host: "127.0.0.1", Port: free[i], ClusterPort: free[3+i], Routes: routes,
		}}
		n.start(t)
		nodes, urls = append(nodes, n), append(urls, n.url())
	}
	nc, err := nats.Connect(strings.Join(urls, ","), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	d := openCluster(t, nc, 3)
	j := journal(t, d, "s")
	appended(t, j, 1, 50)
	for round := range 2 {
		victim := leader(t, d, nodes)
		killed := make(chan struct{})
		go func() {
			defer close(killed)
			victim.kill(t)
		}()
		from := event.Seq(51 + round*100)
		appended(t, j, from, from+99)
		<-killed
		complete(t, journal(t, openCluster(t, nc, 0), "s"), from+99)
		victim.start(t)
		j = journal(t, d, "s")
	}
	if n := openCluster(t, nc, 0).stream.CachedInfo().Config.Replicas; n != 3 {
		t.Errorf("who does not say how many servers are to have a record made it %d", n)
	}
}

// openCluster opens the sessions as soon as the cluster has a leader.
func openCluster(t *testing.T, nc *nats.Conn, replicas int) *DB {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		// Without a leader, the cluster does not answer.
		once, cancel := context.WithTimeout(ctx, 5*time.Second)
		d, err := Open(once, nc, Options{Replicas: replicas, TempDir: t.TempDir()})
		cancel()
		if err == nil {
			return d
		}
		if pause(ctx) != nil {
			t.Fatal(err)
		}
	}
}

// leader returns the server that leads the stream.
func leader(t *testing.T, d *DB, nodes []*node) *node {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		once, cancel := context.WithTimeout(ctx, 5*time.Second)
		info, err := d.stream.Info(once)
		cancel()
		if err == nil && info.Cluster != nil {
			for _, n := range nodes {
				if n.options.Name == info.Cluster.Leader {
					return n
				}
			}
		}
		if pause(ctx) != nil {
			t.Fatalf("no leader: %v", err)
		}
	}
}
