package changes

import (
	"errors"
	"path/filepath"

	"github.com/seed-009c0928/agent/core/snapshot"
)

// Forget gives up the snapshots of a session below home, and frees their space as
// far as no process uses the store.
func Forget(home, session string) error {
	return eachStore(home, func(dir string) error {
		err := snapshot.Forget(dir, session)
		if err == nil {
			_, err = snapshot.Prune(dir)
		}
		return err
	})
}

// Share keeps the snapshots of a session below home for its fork as well.
func Share(home, session, fork string) error {
	return eachStore(home, func(dir string) error { return snapshot.Share(dir, session, fork) })
}

func eachStore(home string, do func(dir string) error) error {
	stores, err := filepath.Glob(filepath.Join(Dir(home), "*", "agent.lock"))
	for _, s := range stores {
		err = errors.Join(err, do(filepath.Dir(s)))
	}
	return err
}
