package early_test

import (
	"fmt"

	"github.com/seed-009c0928/agent/core/proc/internal/early"
)

// A plan is a list of system calls, with arguments that are encoded for the
// helper. This one asks for the process id and keeps it in slot 1.
func ExamplePlan() {
	const getpid = 39
	plan := early.Plan{Path: "/bin/true", Steps: []early.Step{{Call: getpid, Keep: 1}}}
	decoded, ok := early.Decode(plan.Append(nil)[8:])
	fmt.Println(ok, decoded.Path, decoded.Steps[0].Call)
	// Output: true /bin/true 39
}
