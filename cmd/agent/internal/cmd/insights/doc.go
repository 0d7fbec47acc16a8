// Package insights contains the command agent insights.
package insights
