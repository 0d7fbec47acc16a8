//go:build unix

package postgres_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/agent-postgres"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
)

func TestJournal(t *testing.T) {
	db, err := postgres.Open(t.Context(), server(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	n := 0
	coretest.TestJournal(t, func(*testing.T) coretest.OpenJournal {
		n++
		id := fmt.Sprintf("session-%d", n)
		return func() (core.Journal, error) { return db.Journal(context.Background(), id) }
	})
}

// server returns the URL of the database in DATABASE_URL or else starts a server.
func server(t *testing.T) string {
	if url := os.Getenv("DATABASE_URL"); url != "" {
		return url
	}
	initdb, server := program("initdb"), program("postgres")
	if initdb == "" || server == "" {
		t.Skip("PostgreSQL is not installed, and DATABASE_URL is not set")
	}
	dir, err := os.MkdirTemp("", "pg") // short, for the socket; another user must reach it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	attr := &syscall.SysProcAttr{}
	if os.Geteuid() == 0 { // the server refuses to run as root
		const nobody = 65534
		attr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	data := filepath.Join(dir, "data")
	command := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(name, args...)
		cmd.Dir, cmd.SysProcAttr = dir, attr
		return cmd
	}
	if out, err := command(initdb, "-D", data, "-U", "agent", "--auth=trust", "--no-sync").CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	var log bytes.Buffer
	cmd := command(server, "-D", data, "-k", dir, "-c", "listen_addresses=")
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGINT) // a fast shutdown
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	url := "postgres://agent@/postgres?host=" + dir
	for deadline := time.Now().Add(time.Minute); ; {
		if conn, err := net.Dial("unix", filepath.Join(dir, ".s.PGSQL.5432")); err == nil {
			_ = conn.Close()
			if db, err := postgres.Open(t.Context(), url); err == nil {
				db.Close()
				return url
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("the server does not start:\n%s", log.String())
		}
		<-time.After(50 * time.Millisecond)
	}
}

// program returns the path of a program of PostgreSQL, "" if there is none.
func program(name string) string {
	if path, err := exec.LookPath(name); err == nil && !strings.HasPrefix(path, "/usr/bin/") {
		return path
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(found) == 0 {
		return ""
	}
	return found[len(found)-1]
}
