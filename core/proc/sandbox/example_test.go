package sandbox_test

import (
	"fmt"

	"github.com/seed-009c0928/agent/core/proc/sandbox"
)

// A profile, set in proc.Spec, defines what a process may do. The output of a
// failed command tells whether the sandbox is the cause.
func ExampleProfile() {
	p := &sandbox.Profile{
		Writable: []string{"/home/ann/project"},
		ReadOnly: []string{"/home/ann/project/.git/"},
		Masked:   []string{"/home/ann/.ssh"},
		Network:  sandbox.Network{Hosts: []string{"*.npmjs.org"}},
	}
	fmt.Println(p.Check())
	for _, c := range p.Explain(sandbox.Namespace, "/home/ann/project", "touch: cannot touch '/etc/motd': Read-only file system\n") {
		fmt.Println(c.Path, c.Kind == sandbox.Outside)
	}
	// Output:
	// <nil>
	// /etc/motd true
}
