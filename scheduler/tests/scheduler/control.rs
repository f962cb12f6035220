//! Effects of operators' commands, one per test.

use crate::script::check;

#[test]
fn a_drained_lane_gives_its_groups_away_and_gets_nothing_until_it_is_back() {
    check(
        "
        > 0 start 2
        > 0 assign 0 4
        place 0/0 on 0 epoch 1
        place 0/1 on 0 epoch 1
        place 0/2 on 1 epoch 1
        place 0/3 on 1 epoch 1
        > 10 arrive 0 0:3 1:3 2:3 3:3
        dispatch 0 to 0: 0/0:3 0/1:3 (6 rows, 6 bytes, Idle, oldest 10, finish 10)
        dispatch 1 to 1: 0/2:3 0/3:3 (6 rows, 6 bytes, Idle, oldest 10, finish 10)
        > 20 control drain 1
        Done: lane 1 is drained: its 2 groups go to other lanes, and it gets no slices
        release 0/2 from 1 epoch 1: Drained
        release 0/3 from 1 epoch 1: Drained
        > 30 complete 1 1 50
        > 30 released 0 2 1 1
        place 0/2 on 0 epoch 2
        > 30 released 0 3 1 1
        place 0/3 on 0 epoch 2
        > 40 complete 0 0 50
        > 50 task 0 units=5
        admit 0: Interactive of a, 1 known
        slice 0 of 0 on 0: 0..1 (Interactive of a after 0, 1 waiting, 0 fs, finish 50)
        > 51 arrive 0 3:4
        dispatch 2 to 0: 0/3:4 (4 rows, 4 bytes, Idle, oldest 51, finish 84)
        > 60 control drain 1
        Done: lane 1 is drained already
        > 60 control undrain 1
        Done: lane 1 is drained no more: groups that are best there move to it
        release 0/0 from 0 epoch 1: Rebalance
        release 0/1 from 0 epoch 1: Rebalance
        slice 1 of 0 on 1: 1..2 (Interactive of a after 1, 1 waiting, 0 fs, finish 60)
        > 70 released 0 0 0 1
        place 0/0 on 1 epoch 2
        > 70 released 0 1 0 1
        place 0/1 on 1 epoch 2
        > 80 control undrain 1
        Done: lane 1 is not drained
        ",
    );
}

#[test]
fn commands_that_cannot_be_obeyed_are_refused_in_words() {
    check(
        "
        > 0 start 2
        > 0 assign 0 2
        place 0/0 on 0 epoch 1
        place 0/1 on 1 epoch 1
        > 10 control drain 2
        Refused: there is no lane 2: lanes are numbered from 0 to 1
        > 10 control undrain -1
        Refused: there is no lane -1: lanes are numbered from 0 to 1
        > 10 control drain 0
        Done: lane 0 is drained: its group goes to another lane, and it gets no slices
        release 0/0 from 0 epoch 1: Drained
        > 10 control drain 1
        Refused: no other lane than 1 is ready and in service: lane 0 is drained (`undrain 0`)
        > 10 control breaker 1 open
        Refused: no other lane than 1 is ready and in service: lane 0 is drained (`undrain 0`)
        > 10 control undrain 0
        Done: lane 0 is drained no more: groups that are best there move to it
        release 0/1 from 1 epoch 1: Rebalance
        > 10 control breaker 1 open
        Done: the breaker of lane 1 is held open: it has no groups, and it gets no slices
        > 10 control breaker 1 open
        Done: the breaker of lane 1 is held open already
        > 10 control breaker 0 open
        Refused: no other lane than 0 is ready and in service: the breaker of lane 1 is held open (`breaker 1 auto`)
        > 10 control weight 0 -1
        Refused: -1 is no weight of a lane: it is from 0 (stands by) to 1000000
        > 10 control tenant a 0
        Refused: 0 is no weight of a tenant: it is from 1 to 1000
        > 10 control policy dice
        Refused: there is no policy of tasks called dice; there are: fair, lp-price, earliest-deadline, least-laxity, first-come, round-robin, weighted-round-robin, score-utilization, shortest-queue, two-choices, earliest-completion
        > 10 control placement dice
        Refused: there is no policy of placement called dice; there are: rendezvous, balanced
        > 10 control policy linucb
        Refused: there is no policy of tasks called linucb: this software has linucb@3
        > 10 control policy linucb@1
        Refused: there is no policy of tasks called linucb@1: this software has linucb@3
        > 2000000001 control rebalance
        Refused: it came 1000 ms after its deadline: send it again
        ",
    );
}

#[test]
fn a_refusal_names_the_breaker_in_its_way() {
    check(
        "
        > 0 start 2 losses=1
        > 10 lost 1
        fence 1: 0 groups, gone
        breaker of 1: Open, Losses 1 of 1
        wake 1010
        > 20 control drain 0
        Refused: no other lane than 0 is ready and in service: lane 1 is lost
        > 30 ready 1
        > 40 control drain 0
        Refused: no other lane than 0 is ready and in service: the breaker of lane 1 is open (`breaker 1 close`)
        > 1010 woke
        breaker of 1: HalfOpen, Probe 1000 of 1000
        > 1020 control drain 0
        Refused: no other lane than 0 is ready and in service: the breaker of lane 1 is half open, and tries it (`breaker 1 close`)
        ",
    );
}

#[test]
fn weights_count_where_groups_are_placed_and_rebalancing_moves_what_is_elsewhere() {
    check(
        "
        > 0 start 2
        > 0 assign 0 8
        place 0/0 on 0 epoch 1
        place 0/1 on 0 epoch 1
        place 0/2 on 1 epoch 1
        place 0/3 on 1 epoch 1
        place 0/4 on 1 epoch 1
        place 0/5 on 1 epoch 1
        place 0/6 on 0 epoch 1
        place 0/7 on 0 epoch 1
        > 10 control weight 1 3
        Done: lane 1 weighs 3, and weighed 1; groups stay where they are until `rebalance`
        > 20 control rebalance
        Done: of 8 groups those move that would be placed elsewhere now
        release 0/0 from 0 epoch 1: Rebalance
        release 0/1 from 0 epoch 1: Rebalance
        > 30 control weight 0 0
        Done: lane 0 weighs 0, and weighed 1; groups stay where they are until `rebalance`
        > 30 control weight 1 0
        Done: lane 1 weighs 0, and weighed 3; groups stay where they are until `rebalance`
        > 40 control rebalance
        Done: of 8 groups those move that would be placed elsewhere now
        ",
    );
}

#[test]
fn what_no_other_lane_can_do_a_drained_one_does() {
    check(
        "
        > 0 start 2 split=equal
        > 0 assign 0 2
        place 0/0 on 0 epoch 1
        place 0/1 on 1 epoch 1
        > 10 control drain 1
        Done: lane 1 is drained: its group goes to another lane, and it gets no slices
        release 0/1 from 1 epoch 1: Drained
        > 20 released 0 1 1 1
        place 0/1 on 0 epoch 2
        > 30 lost 0
        fence 0: 2 groups, gone
        restore 0 for 0
        > 30 task 0 units=4
        admit 0: Interactive of a, 1 known
        split 0, Equal: 1:0..4 by 1
        slice 0 of 0 on 1: 0..1 (Interactive of a after 0, 1 waiting, 0 fs, finish 30)
        > 40 assign 0 2
        place 0/0 on 1 epoch 2
        place 0/1 on 1 epoch 3
        > 50 ready 0
        release 0/0 from 1 epoch 2: Drained
        release 0/1 from 1 epoch 3: Drained
        slice 1 of 0 on 0: 1..2 (Interactive of a after 1, 1 waiting, 0 fs, finish 50)
        ",
    );
}

#[test]
fn a_breaker_that_is_held_open_is_as_a_drain_and_closed_it_is_not() {
    check(
        "
        > 0 start 2
        > 0 assign 0 2
        place 0/0 on 0 epoch 1
        place 0/1 on 1 epoch 1
        > 10 control breaker 1 open
        Done: the breaker of lane 1 is held open: its group goes to another lane, and it gets no slices
        release 0/1 from 1 epoch 1: Breaker
        > 20 released 0 1 1 1
        place 0/1 on 0 epoch 2
        > 30 control drain 1
        Done: lane 1 is drained: it has no groups, and it gets no slices
        > 40 control breaker 1 auto
        Done: the breaker of lane 1 judges by itself
        > 50 control undrain 1
        Done: lane 1 is drained no more: groups that are best there move to it
        release 0/0 from 0 epoch 1: Rebalance
        > 60 control breaker 1 closed
        Done: the breaker of lane 1 is held closed
        ",
    );
}

#[test]
fn a_tenant_weighs_more_from_a_command_on() {
    check(
        "
        > 0 start 1
        > 0 assign 0 1
        place 0/0 on 0 epoch 1
        > 10 control tenant b 4
        Done: tenant b weighs 4, and weighed 1
        > 10 control tenant b 5
        Done: tenant b weighs 5, and weighed 4
        > 20 task 0 units=2 tenant=b
        admit 0: Interactive of b, 1 known
        slice 0 of 0 on 0: 0..1 (Interactive of b after 0, 1 waiting, 0 fs, finish 20)
        > 30 done 0 0 1000
        slice 1 of 0 on 0: 1..2 (Interactive of b after 200, 1 waiting, 1000000000 fs, finish 1030)
        > 40 done 0 1 1000
        finish 0: 2 slices, 2000 ns
        ",
    );
}

#[test]
fn another_policy_of_tasks_decides_from_now_on() {
    check(
        "
        > 0 start 1 slice=1000
        > 0 assign 0 1
        place 0/0 on 0 epoch 1
        > 1 task 0
        admit 0: Interactive of a, 1 known
        slice 0 of 0 on 0: 0..1 (Interactive of a after 0, 1 waiting, 0 fs, finish 1)
        > 2 task 1
        admit 1: Interactive of a, 2 known
        > 3 task 2 deadline=9000
        admit 2: Interactive of a, 3 known
        wake 9000
        > 4 task 3 deadline=8000
        admit 3: Interactive of a, 4 known
        wake 8000
        > 5 control policy first-come
        Done: the policy of tasks is first-come, and was fair; what waits for one lane alone stays there
        > 100 done 0 0 10
        finish 0: 1 slices, 10 ns
        slice 1 of 1 on 0: 0..1 (Interactive of a after 10, 3 waiting, 10000000 fs, finish 110)
        > 101 control policy earliest-deadline
        Done: the policy of tasks is earliest-deadline, and was first-come; what waits for one lane alone stays there
        > 110 done 0 1 10
        finish 1: 1 slices, 10 ns
        slice 2 of 3 on 0: 0..1 (Interactive of a after 20, 2 waiting, 10000000 fs, finish 120)
        > 111 control policy shortest-queue
        Done: the policy of tasks is shortest-queue, and was earliest-deadline; what waits for one lane alone stays there
        > 112 task 4
        admit 4: Interactive of a, 3 known
        assign 4 to 0: 1 tasks, 8 ns, then 10 ns
        > 120 done 0 2 10
        finish 3: 1 slices, 10 ns
        slice 3 of 2 on 0: 0..1 (Interactive of a after 30, 2 waiting, 10000000 fs, finish 130)
        ",
    );
}
