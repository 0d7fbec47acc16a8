// Package goldentest compares the results of tests with files. It is for tests only.
package goldentest
