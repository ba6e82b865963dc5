;; A switch in a loop: a machine of eight instructions over a tape of bytes, by br_table
;; test: 1100
;; bench: 34000
(module
  (memory (export "memory") 1)
  ;; The program: > right, < left, + add, - subtract, [ and ] loop, . output, anything else ends it.
  (data (i32.const 0) "++++++++[>++++[>++>+++>+++>+<<<<-]>+>+>->>+[<]<-]>>.>---.+++++++..+++.>>.<-.<.+++.------.--------.>>+.>++.!")

  ;; Forward or backward to the bracket that belongs to the one at a place.
  (func $match (param $at i32) (param $step i32) (result i32)
    (local $depth i32) (local $letter i32)
    (loop $next
      (local.set $letter (i32.load8_u (local.get $at)))
      (local.set $depth (i32.sub (i32.add (local.get $depth) (i32.eq (local.get $letter) (i32.const 91)))
        (i32.eq (local.get $letter) (i32.const 93))))
      (if (i32.eqz (local.get $depth)) (then (return (local.get $at))))
      (local.set $at (i32.add (local.get $at) (local.get $step)))
      (br $next))
    (unreachable))

  (func $interpret (param $sum i64) (result i64)
    (local $at i32) (local $cell i32)
    (memory.fill (i32.const 256) (i32.const 0) (i32.const 256))
    (local.set $cell (i32.const 256))
    (loop $next
      (block $other (block $close (block $open (block $output (block $add (block $subtract (block $left (block $right
        ;; From + (43) on: + , - . and so on; < is 60, > is 62, [ is 91, ] is 93.
        (br_table $add $other $subtract $output $other $other $other $other $other $other $other $other $other $other
          $other $other $other $left $other $right $other $other $other $other $other $other $other $other $other
          $other $other $other $other $other $other $other $other $other $other $other $other $other $other $other
          $other $other $other $other $open $other $close $other
          (i32.sub (i32.load8_u (local.get $at)) (i32.const 43))))
        ;; right
        (local.set $cell (i32.add (local.get $cell) (i32.const 1)))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br $next))
        ;; left
        (local.set $cell (i32.sub (local.get $cell) (i32.const 1)))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br $next))
        ;; subtract
        (i32.store8 (local.get $cell) (i32.sub (i32.load8_u (local.get $cell)) (i32.const 1)))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br $next))
        ;; add
        (i32.store8 (local.get $cell) (i32.add (i32.load8_u (local.get $cell)) (i32.const 1)))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br $next))
        ;; output
        (local.set $sum (i64.add (i64.mul (local.get $sum) (i64.const 31)) (i64.load8_u (local.get $cell))))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br $next))
        ;; open
        (if (i32.eqz (i32.load8_u (local.get $cell)))
          (then (local.set $at (call $match (local.get $at) (i32.const 1)))))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br $next))
        ;; close
        (local.set $at (call $match (local.get $at) (i32.const -1)))
        (br $next))
      ;; other: the end
      )
    (local.get $sum))

  (func (export "run") (param $rounds i32) (result i64)
    (local $round i32) (local $sum i64)
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $round) (local.get $rounds)))
        (local.set $sum (call $interpret (local.get $sum)))
        (local.set $round (i32.add (local.get $round) (i32.const 1)))
        (br $next)))
    (local.get $sum)))
