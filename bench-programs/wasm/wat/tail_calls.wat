;; Loops made of tail calls: even and odd, a Collatz walk, and a machine of states called through a table
;; test: 2300
;; bench: 74000
;; features: tail-call
(module
  (type $state (func (param i32 i32 i64) (result i64)))
  (table 3 funcref)
  (elem (i32.const 0) func $between $in_word $in_number)
  (memory (export "memory") 1)

  (func $even (param $n i32) (result i32)
    (if (i32.eqz (local.get $n)) (then (return (i32.const 1))))
    (return_call $odd (i32.sub (local.get $n) (i32.const 1))))

  (func $odd (param $n i32) (result i32)
    (if (i32.eqz (local.get $n)) (then (return (i32.const 0))))
    (return_call $even (i32.sub (local.get $n) (i32.const 1))))

  (func $collatz (param $n i64) (param $steps i64) (result i64)
    (if (i64.le_u (local.get $n) (i64.const 1)) (then (return (local.get $steps))))
    (if (i64.eqz (i64.and (local.get $n) (i64.const 1)))
      (then (return_call $collatz (i64.shr_u (local.get $n) (i64.const 1))
        (i64.add (local.get $steps) (i64.const 1)))))
    (return_call $collatz (i64.add (i64.mul (local.get $n) (i64.const 3)) (i64.const 1))
      (i64.add (local.get $steps) (i64.const 1))))

  ;; The state for a letter: 0 between, 1 in a word, 2 in a number.
  (func $kind (param $letter i32) (result i32)
    (select (i32.const 1)
      (select (i32.const 2) (i32.const 0) (i32.lt_u (i32.sub (local.get $letter) (i32.const 48)) (i32.const 10)))
      (i32.lt_u (i32.sub (local.get $letter) (i32.const 97)) (i32.const 26))))

  (func $next (type $state) (param $at i32) (param $end i32) (param $sum i64) (result i64)
    (if (i32.ge_u (local.get $at) (local.get $end)) (then (return (local.get $sum))))
    (return_call_indirect (type $state)
      (local.get $at) (local.get $end) (local.get $sum)
      (call $kind (i32.load8_u (local.get $at)))))

  (func $between (type $state) (param $at i32) (param $end i32) (param $sum i64) (result i64)
    (return_call $next (i32.add (local.get $at) (i32.const 1)) (local.get $end)
      (i64.add (local.get $sum) (i64.const 1))))

  (func $in_word (type $state) (param $at i32) (param $end i32) (param $sum i64) (result i64)
    (return_call $next (i32.add (local.get $at) (i32.const 1)) (local.get $end)
      (i64.add (i64.mul (local.get $sum) (i64.const 31)) (i64.load8_u (local.get $at)))))

  (func $in_number (type $state) (param $at i32) (param $end i32) (param $sum i64) (result i64)
    (return_call $next (i32.add (local.get $at) (i32.const 1)) (local.get $end)
      (i64.add (i64.mul (local.get $sum) (i64.const 10)) (i64.load8_u (local.get $at)))))

  (func (export "run") (param $rounds i32) (result i64)
    (local $i i32) (local $sum i64)
    (loop $fill
      (i32.store8 (local.get $i) (i32.add (i32.const 40) (i32.rem_u (i32.mul (local.get $i) (i32.const 29)) (i32.const 83))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $fill (i32.lt_u (local.get $i) (i32.const 300))))
    (local.set $i (i32.const 0))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $i) (local.get $rounds)))
        (local.set $sum (i64.add (local.get $sum) (i64.extend_i32_u (call $even (i32.and (local.get $i) (i32.const 127))))))
        (local.set $sum (call $collatz (i64.extend_i32_u (local.get $i)) (local.get $sum)))
        (local.set $sum (call $next (i32.const 0) (i32.rem_u (local.get $i) (i32.const 300)) (local.get $sum)))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br $next)))
    (local.get $sum)))
