package proc

import (
	"math/rand/v2"

	"golang.org/x/sys/unix"
)

// newBrand returns a number that identifies the processes of a supervisor, 0 if there
// can be none. They have it as the soft value of a resource limit that the kernel
// keeps but has not enforced since Linux 2.4, the number of file locks. Unlike a
// marker in the environment, it stays with everything that they start.
func newBrand() uint64 {
	const least, most = 1 << 40, 1 << 62
	var now unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_LOCKS, &now) != nil || min(now.Max, most) <= least {
		return 0
	}
	return least + rand.Uint64N(min(now.Max, most)-least)
}

// branded runs start, so that the child which it starts has the brand. The caller
// holds the forking lock.
func branded(brand uint64, start func() error) error {
	var before unix.Rlimit
	if brand == 0 || unix.Getrlimit(unix.RLIMIT_LOCKS, &before) != nil {
		return start()
	}
	// The worst that an error does is that a daemon survives a kill -9.
	_ = unix.Setrlimit(unix.RLIMIT_LOCKS, &unix.Rlimit{Cur: min(brand, before.Max), Max: before.Max})
	defer func() { _ = unix.Setrlimit(unix.RLIMIT_LOCKS, &before) }()
	return start()
}
