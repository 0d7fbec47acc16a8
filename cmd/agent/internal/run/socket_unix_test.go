//go:build unix

package run

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSocketIsForOneUser(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := listen(path)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if c, err := net.Dial("unix", path); err == nil {
			_ = c.Close()
		}
	}()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if err := checkPeer(conn); err != nil {
		t.Errorf("the own user is refused: %v", err)
	}
	if err := checkUID(uint32(os.Geteuid() + 1)); err == nil || !strings.Contains(err.Error(), "another user") {
		t.Errorf("another user: %v", err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	if _, err := listen("/" + strings.Repeat("x", 200)); err == nil || !strings.Contains(err.Error(), "use a shorter one") {
		t.Errorf("a long path: %v", err)
	}
}
