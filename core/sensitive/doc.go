// Package sensitive is the list of paths that need more care than others: those
// that hold secrets, and those that programs run, load or obey later. It is the
// only such list: the policy, the file tools, every sandbox, the confinement of
// plugins and "agent doctor" use it, and docs/sensitive-paths.md shows it.
package sensitive
