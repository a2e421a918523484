/*
 * The breaker's protocol, for Spin: instances with stale copies act on one shared record by conditional writes. They
 * die with a trial in hand, lose answers, send twice, and report late. scripts/spin checks it, and that each of the
 * conditions is needed: with one of them left out (-D) it has to find the error.
 *
 *   NOFENCE    results are written whatever generation, token and holder the record has
 *   NOTOKEN    their generation is compared, their token and holder are not
 *   NOGEN      a failure opens whatever generation it was admitted in
 *   NOLEASE    a trial may be taken from one that holds it
 *   NOEXPIRY   a lease lasts for ever
 *
 * SKEW lets clocks differ by more than a lease's margin. Then two trials may run at once, and nothing else goes wrong.
 */
#ifndef N
#define N 3 /* instances */
#endif
#ifndef GENS
#define GENS 4 /* where a run ends: numbers have to be finite, and may not wrap, as the fence rests on them */
#endif
#ifndef TOKENS
#define TOKENS 4
#endif

mtype = { C, O, H, F }; /* closed, open, half-open, forced by an operator */

/* the record */
mtype st = C;
byte g = 0, token = 0, holder = 0; /* holder: an instance, 0 for none */
bit due = 0, leased = 0;           /* what its times are by the clock: the opening is over, the lease isn't */

/* what only the proof sees */
byte trials = 0;     /* calls that run as trials; one from before an operator's word is none any more */
bit trying[N + 1];   /* who makes them */
bit settled[TOKENS]; /* tokens whose result was accepted */

#define spent (g >= GENS || token >= TOKENS - 1)

#ifdef NOFENCE
#define fence (st == H || st == C || st == O)
#elif defined(NOTOKEN)
#define fence (st == H && g == myG)
#else
#define fence (st == H && g == myG && token == myT && holder == me)
#endif

#ifdef NOGEN
#define trippable (st == C)
#else
#define trippable (st == C && g == myG)
#endif

#ifdef NOLEASE
#define takeable (st == H)
#else
#define takeable (st == H && !leased)
#endif

#ifdef SKEW
#define alone true
#define over_time (leased)
#else
#define alone (trials == 1)
#define over_time (leased && !trying[holder])
#endif

/* A trial's result that was accepted: the only one of its token, of the trial that the record names, and it leaves
 * no state but the one that it was made for. */
inline accept() {
	assert(st == H);
	assert(g == myG);
	assert(token == myT);
	assert(!settled[myT]);
	settled[myT] = 1;
	holder = 0; leased = 0
}

inline settle() {
	atomic {
		if
		:: fence && !spent ->
			accept();
			if
			:: result == 0 -> st = C; g++
			:: result == 1 -> st = O; g++; due = 0
			:: else -> skip /* neutral: the lease is free again */
			fi
		:: else -> skip /* stale, and dropped */
		fi
	}
}

proctype Instance(byte me) {
	mtype mySt = C;
	byte myG = 0, myT = 0, result = 0;
	bit aged = 0;

enter:
	atomic { /* a call comes: it goes by the copy as it is, at most once more, or by a new one */
		!spent;
		if
		:: !aged -> aged = 1
		:: true -> aged = 0; mySt = st; myG = g
		fi
	}
	if
	:: mySt == F -> goto enter
	:: mySt == C -> goto call
	:: else -> goto acquire
	fi;

call: /* admitted, in the generation of the copy; it fails, or says nothing of import */
	if
	:: true -> goto enter
	:: true
	fi;
	atomic {
		if
		:: trippable && !spent -> assert(g == myG); st = O; g++; due = 0
		:: else -> skip
		fi;
		goto enter
	}

acquire:
	atomic {
		if
		:: g == myG && ((st == O && due) || takeable) && !spent ->
			st = H; token++; holder = me; leased = 1; myT = token;
			if
			:: true -> trials++; trying[me] = 1; assert(alone)
			:: true -> goto over /* the answer was lost, and the caller with it */
			fi
		:: else -> mySt = st; myG = g; aged = 0; goto enter /* the loser learns what holds */
		fi
	}
	atomic { /* the call ends, before its lease does */
		trials = trials - trying[me]; trying[me] = 0;
		if
		:: true -> result = 0
		:: true -> result = 1
		:: true -> result = 2 /* neutral */
		:: true -> goto over /* died: a new one, with none of it, comes in its place */
		fi
	}
	settle(); /* at once, or long after the lease */
	if
	:: true -> settle() /* sent twice, as after a lost answer */
	:: true
	fi;
over:
	atomic { myT = 0; result = 0; goto enter }
}

/* Time passes. A call ends before its lease does: its own clock sees to that while no two clocks differ by more than
 * the lease's margin. */
proctype Clock() {
	do
	:: atomic { st == O && !due -> due = 1 }
#ifndef NOEXPIRY
	:: atomic { st == H && over_time -> leased = 0 }
#endif
	od
}

proctype Operator() {
	byte i;
	atomic {
		!spent -> st = F; g++; holder = 0; leased = 0;
		for (i : 1 .. N) { trying[i] = 0 }
		trials = 0; i = 0
	}
	atomic { !spent -> assert(st == F); st = C; g++ } /* nobody else has left the forced state */
}

init {
	byte i;
	atomic {
		for (i : 1 .. N) { run Instance(i) }
		run Clock();
#ifndef LIVE
		run Operator()
#endif
	}
}

#ifdef LIVE
/* An open breaker is always tried again: from wherever it is, there comes a trial, or it closes. */
ltl tried { [] ((st != C) -> <> (st == C || trials > 0 || spent)) }
#endif
