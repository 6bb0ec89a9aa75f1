// Package analyze turns packets into verdicts: it keeps the flow table, joins flows across points and translations into
// requests, and says of each which source address left the node, how far it got, and what the captures cannot tell.
//
// What comes in are wire.Packets, capture by capture, and the facts of the cluster. What goes out is a Result: values
// only, in a fixed order. Run in run.go reads as the list of steps. The requests of a large Result are not held: the flow
// table is, and each is judged again when it is asked for (requests.go).
//
// What is deliberately absent: no file, no clock, no terminal, no packet library. A verdict must be reproducible from the
// same captures and facts on another machine and another day, so nothing here may look at this one.
package analyze
