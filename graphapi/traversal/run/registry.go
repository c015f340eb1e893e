package run

import (
	"sort"
	"time"

	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// The table of steps. A row without a function is a step that is known but not supported. V, E, and until, emit and
// times before a repeat() are compiled separately (see one).
var steps = [...]def{
	{"V", 0, -1, "", nil},
	{"E", 0, -1, "", nil},
	{"addE", 1, 1, "from to property", buildAddE},
	{"addV", 0, 1, "property", buildAddV},
	{"aggregate", 1, 2, "by", buildAggregate},
	{"all", 1, 1, "", buildListTest},
	{"and", 0, -1, "", buildLogic},
	{"any", 1, 1, "", buildListTest},
	{"as", 1, -1, "", buildAs},
	{"asBool", 0, 0, "", buildConvert},
	{"asDate", 0, 0, "", buildConvert},
	{"asNumber", 0, 1, "", buildConvert},
	{"asString", 0, 1, "", buildConvert},
	{"barrier", 0, 1, "", buildBarrier},
	{"both", 0, -1, "", buildWalk},
	{"bothE", 0, -1, "", buildWalk},
	{"bothV", 0, 0, "", buildEnds},
	{"branch", 1, 1, "option", buildChoose},
	{"by", 0, -1, "", buildStray},
	{"cap", 1, -1, "", buildCap},
	{"choose", 1, 3, "option", buildChoose},
	{"coalesce", 0, -1, "", buildCoalesce},
	{"coin", 1, 1, "", buildCoin},
	{"combine", 1, 1, "", buildListOp},
	{"concat", 0, -1, "", buildConcat},
	{"conjoin", 1, 1, "", buildConjoin},
	{"constant", 1, 1, "", buildConstant},
	{"count", 0, 1, "", buildCount},
	{"cyclicPath", 0, 0, "by from to", buildSimplePath},
	{"dateAdd", 2, 2, "", buildDateAdd},
	{"dateDiff", 1, 1, "", buildDateDiff},
	{"dedup", 0, -1, "by", buildDedup},
	{"difference", 1, 1, "", buildListOp},
	{"discard", 0, 0, "", buildDiscard},
	{"disjunct", 1, 1, "", buildListOp},
	{"drop", 0, 0, "", buildDrop},
	{"element", 0, 0, "", buildElement},
	{"elementMap", 0, -1, "", buildValueMap},
	{"fail", 0, 1, "", buildFail},
	{"filter", 1, 1, "", buildChild},
	{"flatMap", 1, 1, "", buildChild},
	{"fold", 0, 2, "", buildFold},
	{"format", 1, 1, "by", buildFormat},
	{"from", 0, -1, "", buildStray},
	{"group", 0, 1, "by", buildGroup},
	{"groupCount", 0, 1, "by", buildGroup},
	{"has", 1, 3, "", buildHas},
	{"hasId", 1, -1, "", buildHas},
	{"hasKey", 1, -1, "", buildHas},
	{"hasLabel", 1, -1, "", buildHas},
	{"hasNot", 1, 1, "", buildHas},
	{"hasValue", 1, -1, "", buildHas},
	{"id", 0, 0, "", buildToken},
	{"identity", 0, 0, "", buildIdentity},
	{"in", 0, -1, "", buildWalk},
	{"inE", 0, -1, "", buildWalk},
	{"inV", 0, 0, "", buildEnds},
	{"index", 0, 0, "with", buildIndex},
	{"inject", 0, -1, "", buildInject},
	{"intersect", 1, 1, "", buildListOp},
	{"is", 1, 1, "", buildIs},
	{"key", 0, 0, "", buildToken},
	{"label", 0, 0, "", buildToken},
	{"lTrim", 0, 1, "", buildText},
	{"length", 0, 1, "", buildText},
	{"limit", 1, 2, "", buildRange},
	{"local", 1, 1, "", buildChild},
	{"loops", 0, 1, "", buildLoops},
	{"map", 1, 1, "", buildChild},
	{"math", 1, 1, "by", buildMath},
	{"max", 0, 1, "", buildAgg},
	{"mean", 0, 1, "", buildAgg},
	{"merge", 1, 1, "", buildListOp},
	{"mergeE", 0, 1, "option", buildMerge},
	{"mergeV", 0, 1, "option", buildMerge},
	{"min", 0, 1, "", buildAgg},
	{"none", 0, 1, "", buildDiscard},
	{"not", 1, 1, "", buildLogic},
	{"option", 0, -1, "", buildStray},
	{"optional", 1, 1, "", buildOptional},
	{"or", 0, -1, "", buildLogic},
	{"order", 0, 1, "by", buildOrder},
	{"otherV", 0, 0, "", buildOtherV},
	{"out", 0, -1, "", buildWalk},
	{"outE", 0, -1, "", buildWalk},
	{"outV", 0, 0, "", buildEnds},
	{"path", 0, 0, "by from to", buildPath},
	{"product", 1, 1, "", buildListOp},
	{"project", 1, -1, "by", buildProject},
	{"properties", 0, -1, "", buildProperties},
	{"property", 1, -1, "property", buildProperty},
	{"propertyMap", 0, -1, "by", buildValueMap},
	{"rTrim", 0, 1, "", buildText},
	{"range", 2, 3, "", buildRange},
	{"repeat", 1, 2, "", buildStray}, // compiled separately
	{"replace", 2, 3, "", buildText},
	{"reverse", 0, 0, "", buildReverse},
	{"sack", 0, 1, "by", buildSack},
	{"sample", 1, 2, "by", buildSample},
	{"select", 1, -1, "by", buildSelect},
	{"sideEffect", 1, 1, "", buildChild},
	{"simplePath", 0, 0, "by from to", buildSimplePath},
	{"skip", 1, 2, "", buildRange},
	{"split", 1, 2, "", buildText},
	{"store", 1, 1, "by", buildAggregate},
	{"substring", 1, 3, "", buildText},
	{"sum", 0, 1, "", buildAgg},
	{"tail", 0, 2, "", buildTail},
	{"to", 1, -1, "", buildTo},
	{"toE", 1, -1, "", buildWalk},
	{"toLower", 0, 1, "", buildText},
	{"toUpper", 0, 1, "", buildText},
	{"toV", 1, 1, "", buildEnds},
	{"tree", 0, 1, "by", buildTree},
	{"trim", 0, 1, "", buildText},
	{"unfold", 0, 0, "", buildUnfold},
	{"union", 0, -1, "", buildUnion},
	{"value", 0, 0, "", buildToken},
	{"valueMap", 0, -1, "by with", buildValueMap},
	{"values", 0, -1, "", buildProperties},
	{"where", 1, 2, "by", buildWhere},
	{"with", 0, -1, "", buildStray},
	{name: "call"},
	{name: "connectedComponent"},
	{"executionProfile", 0, 0, "", buildProfile},
	{"executionprofile", 0, 0, "", buildProfile},
	{name: "io"},
	{"match", 1, -1, "", buildMatch},
	{name: "pageRank"},
	{name: "peerPressure"},
	{"profile", 0, 0, "", buildProfile},
	{name: "program"},
	{name: "read"},
	{name: "shortestPath"},
	{name: "subgraph"},
	{"timeLimit", 1, 1, "", buildTimeLimit},
	{name: "write"},
}

func init() {
	registry = make(map[string]*def, len(steps))
	for i := range steps {
		registry[steps[i].name] = &steps[i]
	}
}

// Steps lists the names of all steps. supported is false for those that aren't supported.
func Steps() (names []string, supported map[string]bool) {
	supported = map[string]bool{"V": true, "E": true, "until": true, "emit": true, "times": true}
	for i := range steps {
		names = append(names, steps[i].name)
		if steps[i].build != nil {
			supported[steps[i].name] = true
		}
	}
	names = append(names, "until", "emit", "times")
	sort.Strings(names)
	return names, supported
}

func buildAs(c *compiler, in *inst) (step, error) {
	return nil, c.addLabels(in.tr, gvalue.Instruction{Op: in.op, Args: in.args})
}

// buildStray reports a modulator without its step.
func buildStray(c *compiler, in *inst) (step, error) {
	return nil, errf(Compile, "The modulator %s() does not belong to the step before it", in.op)
}

// buildTo makes to(direction, label..). With other arguments to() belongs to addE() or path().
func buildTo(c *compiler, in *inst) (step, error) {
	if _, ok := directionArg(in.args); ok {
		return buildWalk(c, in)
	}
	return buildStray(c, in)
}

// buildTimeLimit passes traversers on for a number of milliseconds after the first one.
func buildTimeLimit(c *compiler, in *inst) (step, error) {
	ms, err := in.intArg(in.args[0])
	if err != nil {
		return nil, err
	}
	if ms < 0 || ms > 1<<40 {
		return nil, in.argErr("milliseconds are expected")
	}
	var end time.Time
	return &filterStep{f: func(x *exec, t *trav) (bool, error) {
		now := x.g.clock.Now()
		if end.IsZero() {
			end = now.Add(time.Duration(ms) * time.Millisecond)
		}
		return now.Before(end), nil
	}}, nil
}
